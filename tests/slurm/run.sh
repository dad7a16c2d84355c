#!/bin/sh
# Runs README.md's sbatch example on a real Slurm of one node, set up for this alone: four shards of the bundled run by the
# embedded reporter, merged. Needs root and Debian's packages:
#
#   apt-get install --no-install-recommends slurm-wlm munge
#   cargo build --release && sh tests/slurm/run.sh [TRACEMEND]
set -eu

tree=$(cd "$(dirname "$0")/../.." && pwd)
tracemend=$(realpath "${1:-$tree/target/release/tracemend}")
for program in munged slurmctld slurmd sbatch sinfo "$tracemend"; do
    command -v "$program" > /dev/null || { echo "$program is not there; see the head of $0" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "slurmd needs root" >&2; exit 2; }

work=$(mktemp -d)
clean_up() {
    code=$?
    for daemon in slurmd slurmctld munged; do
        pid=$(cat "$work/$daemon.pid" 2> /dev/null) || continue
        kill "$pid" 2> /dev/null || continue
        while kill -0 "$pid" 2> /dev/null; do sleep 0.1; done
    done
    [ "$code" = 0 ] || tail -n 20 "$work"/*.log "$work"/reports/*.out >&2
    rm -rf "$work"
    exit "$code"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

# munged insists on folders that only root can write to.
chmod 755 "$work"
dd if=/dev/urandom of="$work/munge.key" bs=1024 count=1 2> /dev/null
chmod 400 "$work/munge.key"
munged --key-file "$work/munge.key" --socket "$work/munge.socket" --pid-file "$work/munged.pid" \
    --log-file "$work/munged.log" --seed-file "$work/munge.seed"

mkdir "$work/state" "$work/spool"
host=$(hostname -s)
cat > "$work/slurm.conf" << END
ClusterName=tracemend
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
MpiDefault=none
ReturnToService=2
SwitchType=switch/none
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 RealMemory=1024 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$work/slurm.conf"
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF"
tries=0
until sinfo --noheader --format %t 2> /dev/null | grep -q '^idle'; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo "the node is not ready after 30 s" >&2; exit 1; }
    sleep 0.1
done

# The example is README.md's own text, only smaller.
sed -n '/^#!\/bin\/bash/,/^```/p' "$tree/README.md" | sed '/^```/d' > "$work/analyze.sbatch"
grep -q SLURM_ARRAY_TASK_ID "$work/analyze.sbatch"
cd "$work"
mkdir reports
PATH="$(dirname "$tracemend"):$PATH" RUN="$tree/fixtures/run" XDG_CACHE_HOME="$work/cache" \
    sbatch --wait --cpus-per-task=1 --mem=256M analyze.sbatch
"$tracemend" merge reports/shard-? -o reports/all

python3 - << END
import json
record = json.load(open("reports/all/tracemend_record.json"))
jobs = [(job["trace_file"], job["status"]) for job in record["jobs"]]
shards = {job["output_dir"] for job in record["jobs"]}
print(len(jobs), "jobs of", len(shards), "shards, memory for each:", record["limits"]["memory_bytes"] >> 20, "MiB")
assert record["finished"] and len(jobs) == len(set(jobs)) == 8, jobs
assert sum(status == "SUCCESS" for _, status in jobs) == 7, jobs
assert len(shards) == 4, shards
# Slurm's --mem is the budget, although no cgroup enforces it here.
assert record["limits"]["memory_bytes"] <= 256 << 20
END
echo "the sbatch example works"
