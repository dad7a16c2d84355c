//! An input read ahead by a thread of its own: inflating a gzip stream takes as long as scanning what it gives, and neither
//! waits for the other.

use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Bytes handed over at a time.
const BLOCK: usize = 256 << 10;
/// How many such blocks there are.
const BLOCKS: usize = 3;

/// What the thread has read.
pub(super) struct Ahead {
    full: Receiver<io::Result<Vec<u8>>>,
    empty: Sender<Vec<u8>>,
    block: Vec<u8>,
    /// How much of the block has been read.
    given: usize,
}

/// Begins to read `input` ahead. The thread gives the input back once it has come to its end, or nobody reads any more.
pub(super) fn read_ahead<'scope, R: Read + Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    input: R,
) -> (Ahead, ScopedJoinHandle<'scope, R>) {
    let (full, blocks) = sync_channel(BLOCKS);
    let (empty, emptied) = channel();
    for _ in 0..BLOCKS {
        // The other end is still here.
        let _ = empty.send(vec![0; BLOCK]);
    }
    let reader = scope.spawn(move || read_blocks(input, &full, &emptied));
    let ahead = Ahead {
        full: blocks,
        empty,
        block: Vec::new(),
        given: 0,
    };
    (ahead, reader)
}

fn read_blocks<R: Read>(mut input: R, full: &SyncSender<io::Result<Vec<u8>>>, empty: &Receiver<Vec<u8>>) -> R {
    for mut block in empty {
        block.resize(BLOCK, 0);
        let read = fill(&mut input, &mut block);
        let ended = !matches!(read, Ok(BLOCK));
        let read = read.map(|read| {
            block.truncate(read);
            block
        });
        if full.send(read).is_err() || ended {
            break;
        }
    }
    input
}

/// Fills `block` unless the input ends before. How many bytes it holds then.
pub(super) fn fill<R: Read>(input: &mut R, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match input.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.block.len() {
            match self.full.recv() {
                // The thread has come to the end of the input.
                Err(_) => return Ok(0),
                Ok(block) => {
                    let read = std::mem::replace(&mut self.block, block?);
                    self.given = 0;
                    if read.capacity() == BLOCK {
                        // The thread may have come to the end meanwhile.
                        let _ = self.empty.send(read);
                    }
                }
            }
        }
        let read = (&self.block[self.given..]).read(buffer)?;
        self.given += read;
        Ok(read)
    }
}
