//! Collectives: which kernels they are, of which kind, how large.
//!
//! The rules are TraceLens's (`NcclAnalyser/nccl_analyser.py`, `TraceLens/util.py`), where it has them.

use serde::{Deserialize, Serialize};

use super::decimal;
use super::json;
use super::trace::Runs;

/// What makes collectives one row: the columns of TraceLens's sheet `nccl_summary_long`, without those that name a rank, a
/// process group or a stream, so that rows of several ranks are comparable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CollectiveKey {
    /// What it does, as PyTorch calls it (`allreduce`, `_allgather_base`); where the trace does not say, what the kernel's name
    /// says; [`UNKNOWN`] where neither does.
    pub kind: String,
    /// Type of the elements, as PyTorch calls it (`Float`, `BFloat16`).
    pub dtype: Option<String>,
    /// Elements that each rank puts in.
    pub in_elements: Option<u64>,
    /// Elements that each rank gets out.
    pub out_elements: Option<u64>,
    /// Ranks that take part.
    pub group_size: Option<u64>,
}

/// The kind of a collective that neither the trace nor the kernel's name tells.
pub const UNKNOWN: &str = "unknown";

/// The collectives of one row, by the time their kernels take, waiting for the other ranks included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collective {
    /// Which they are.
    #[serde(flatten)]
    pub key: CollectiveKey,
    /// Their runs.
    #[serde(flatten)]
    pub runs: Runs,
}

impl CollectiveKey {
    /// Bytes of the message: what goes in, or what comes out of an allgather (`Full msg size (MB)` in TraceLens).
    pub fn message_bytes(&self) -> Option<u64> {
        let elements = match KINDS.iter().find(|(name, _)| *name == self.kind) {
            Some((_, Sync::Allgather)) => self.out_elements,
            _ => self.in_elements,
        };
        elements?.checked_mul(element_bytes(self.dtype.as_deref()?)?)
    }

    /// Whether all ranks must have come before any can go on (`implicit_sync_cat` in TraceLens).
    pub fn synchronizes(&self) -> bool {
        KINDS.iter().any(|(name, _)| *name == self.kind)
    }

    /// From the `args` of a Kineto kernel event, the text of a JSON object, and the kernel's name.
    pub(super) fn of_kineto(name: &str, args: Option<&str>) -> Self {
        let picked = args.and_then(|args| {
            json::members(
                args,
                [
                    "Collective name",
                    "dtype",
                    "In msg nelems",
                    "Out msg nelems",
                    "Group size",
                ],
            )
        });
        let [kind, dtype, in_elements, out_elements, group_size] = picked.unwrap_or_default();
        let word = |text: Option<&str>| {
            text.and_then(json::string)
                .filter(|word| !word.is_empty() && word.len() <= LONGEST_WORD)
                .map(|word| word.into_owned())
        };
        CollectiveKey {
            kind: word(kind).unwrap_or_else(|| kind_of_kernel(name).to_owned()),
            dtype: word(dtype),
            in_elements: in_elements.and_then(decimal::count),
            out_elements: out_elements.and_then(decimal::count),
            group_size: group_size.and_then(decimal::count),
        }
    }

    /// From the kernel's name alone.
    pub(super) fn of_kernel(name: &str) -> Self {
        CollectiveKey::of_kineto(name, None)
    }
}

/// Longer words are no kind and no type.
const LONGEST_WORD: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    Allgather,
    Other,
}

/// Names of collectives that synchronize (`collective_type2name` and `implicit_sync_cat` in TraceLens).
const KINDS: [(&str, Sync); 11] = [
    ("allreduce", Sync::Other),
    ("allreduce_coalesced", Sync::Other),
    ("reducescatter", Sync::Other),
    ("_reduce_scatter_base", Sync::Other),
    ("reduce_scatter_tensor_coalesced", Sync::Other),
    ("allgather", Sync::Allgather),
    ("all_gather", Sync::Allgather),
    ("_allgather_base", Sync::Allgather),
    ("all_gather_into_tensor_coalesced", Sync::Allgather),
    ("allgather_into_tensor_coalesced", Sync::Allgather),
    ("all_to_all", Sync::Other),
];

/// Bytes of an element (`dtype2bytes` in TraceLens, and the other types of PyTorch's c10/core/ScalarType.h).
fn element_bytes(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "Byte" | "Char" | "Bool" | "Float8_e5m2" | "Float8_e4m3fn" | "Float8_e5m2fnuz" | "Float8_e4m3fnuz"
        | "Float8_e8m0fnu" | "UInt8" => 1,
        "Short" | "Half" | "BFloat16" | "UInt16" => 2,
        "Int" | "Float" | "UInt32" | "ComplexHalf" => 4,
        "Long" | "Double" | "UInt64" | "ComplexFloat" => 8,
        "ComplexDouble" => 16,
        _ => return None,
    })
}

/// Whether a kernel is a collective's (`COMMUNICATION_KEYS` and `DEFAULT_CUSTOM_COLLECTIVE_PATTERNS` in TraceLens).
pub(super) fn is_communication(name: &str) -> bool {
    contains(name, "nccl") || contains(name, "rccl") || contains(name, CUSTOM_ALLREDUCE)
}

/// vLLM's allreduce.
const CUSTOM_ALLREDUCE: &str = "cross_device_reduce";

/// What a kernel's name says: NCCL's `ncclDevKernel_AllReduce_RING_LL`, RCCL's, vLLM's `cross_device_reduce_1stage`.
fn kind_of_kernel(name: &str) -> &'static str {
    // The longer names first: "AllReduce" holds "Reduce".
    [
        (CUSTOM_ALLREDUCE, "allreduce"),
        ("AllReduce", "allreduce"),
        ("AllGather", "allgather"),
        ("ReduceScatter", "reducescatter"),
        ("AllToAll", "all_to_all"),
        ("Broadcast", "broadcast"),
        ("SendRecv", "send_recv"),
        ("_Reduce_", "reduce"),
    ]
    .iter()
    .find(|(part, _)| contains(name, part))
    .map_or(UNKNOWN, |(_, kind)| kind)
}

/// Whether ASCII `part` stands in `name`, in whatever case.
fn contains(name: &str, part: &str) -> bool {
    let (name, part) = (name.as_bytes(), part.as_bytes());
    let [low, high] = [part[0].to_ascii_lowercase(), part[0].to_ascii_uppercase()];
    memchr::memchr2_iter(low, high, name).any(|at| {
        name.get(at..at + part.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_collectives() {
        for (name, kind) in [
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                Some("allreduce"),
            ),
            (
                "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
                Some("broadcast"),
            ),
            ("ncclDevKernel_Reduce_Sum_f32_RING_LL()", Some("reduce")),
            ("void rcclGenericKernel<1, false>(ncclDevComm*)", Some(UNKNOWN)),
            ("NCCLDEVKERNEL_SENDRECV", Some("send_recv")),
            (
                "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>",
                Some("allreduce"),
            ),
            ("void at::native::reduce_kernel<512, 1>", None),
            ("ncc", None),
            ("", None),
        ] {
            assert_eq!(is_communication(name), kind.is_some(), "{name}");
            assert_eq!(CollectiveKey::of_kernel(name).kind, kind.unwrap_or(UNKNOWN), "{name}");
        }
    }

    #[test]
    fn the_message_of_an_allgather_is_what_comes_out() {
        let args = r#"{"Collective name": "_allgather_base", "In msg nelems": 25136, "Out msg nelems": 201088, "Group size": 8, "dtype": "BFloat16"}"#;
        let key = CollectiveKey::of_kineto("ncclDevKernel_AllGather_RING_LL", Some(args));
        assert_eq!(
            (key.message_bytes(), key.group_size, key.synchronizes()),
            (Some(402_176), Some(8), true)
        );
        let odd = r#"{"Collective name": 7, "In msg nelems": -1, "dtype": [], "Group size": "x"}"#;
        let key = CollectiveKey::of_kineto("ncclDevKernel_Generic", Some(odd));
        assert_eq!(
            (key.kind.as_str(), key.message_bytes(), key.synchronizes()),
            (UNKNOWN, None, false)
        );
    }
}
