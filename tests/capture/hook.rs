//! The start-up hook, by itself.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::util::Answer;

#[test]
fn the_hook_keeps_launchers_and_helpers_out_in_all_spellings() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let say = "import os, sys\nprint(os.environ.get('KINETO_USE_DAEMON'), os.environ.get('TRACEMEND_KINETO_USE_DAEMON'), 'torch.profiler' in sys.modules)\n";
    for path in [
        "torch/distributed/run.py",
        "torch/distributed/launch.py",
        "pip/__main__.py",
        "torchrun",
        "train.py",
        "mnt/pip",
    ] {
        write(path, say);
    }
    write("training.py", &format!("import torch\n{say}"));
    for package in ["torch", "torch/distributed", "torch/profiler", "pip"] {
        write(&format!("{package}/__init__.py"), "");
    }
    write("sitecustomize.py", "print('chained')\n");
    let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("host/capture");
    let run = |arguments: &[&str], variable: &str| {
        let path = std::env::join_paths([hook.as_path(), folder.path()]).unwrap();
        let mut command = Command::new("python3");
        command
            .args(arguments)
            .current_dir(folder.path())
            .env("PYTHONPATH", path)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
            .env_remove("KINETO_USE_DAEMON")
            .env_remove("TRACEMEND_KINETO_USE_DAEMON")
            .env(variable, "1");
        let output = command.output().unwrap();
        let text = output.text();
        text.strip_prefix("chained\n")
            .unwrap_or_else(|| panic!("not chained: {text}{}", output.errors()))
            .trim()
            .to_owned()
    };
    let spawned = format!("from multiprocessing.spawn import spawn_main\n{say}");
    for (arguments, said) in [
        (&["-m", "torch.distributed.run", "train.py"][..], "None 1 False"),
        (&["-u", "-mtorch.distributed.run"], "None 1 False"),
        (&["-X", "dev", "-m", "torch.distributed.launch"], "None 1 False"),
        (&["torch/distributed/run.py"], "None 1 False"),
        (&["torchrun", "train.py"], "None 1 False"),
        (&["-m", "pip", "list"], "None None False"),
        (&["-c", &spawned], "None None False"),
        (&["train.py", "--data", "/mnt/pip"], "1 None False"),
        (&["train.py", "torchrun", "-m", "torch.distributed.run"], "1 None False"),
        (&["training.py"], "1 None True"),
        (&["-W", "ignore", "training.py", "-m", "pip"], "1 None True"),
    ] {
        assert_eq!(run(arguments, "KINETO_USE_DAEMON"), said, "{arguments:?}");
    }
    assert_eq!(run(&["training.py"], "TRACEMEND_KINETO_USE_DAEMON"), "1 1 True");
    assert_eq!(run(&["training.py"], "NOTHING"), "None None False");
}
