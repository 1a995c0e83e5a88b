//! Frames that wait to be sent by one face.
//!
//! A [`TxQueue`] is one run of bytes plus the length of each frame, so that a
//! stream writes everything at once and datagrams of equal size go to the
//! kernel as one message. Its memory comes from a [`TxPool`] and goes back as
//! soon as the queue is empty: a face without backlog owns none.

/// A buffer larger than this is freed, not pooled, in bytes.
const MAX_POOLED_BYTES: usize = 256 << 10;
/// Buffers that the pool keeps.
const MAX_POOLED: usize = 256;
/// Sent bytes at the front of a queue that make it worth moving the rest.
const COMPACT_BYTES: usize = 128 << 10;

#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    lens: Vec<u32>,
}

/// Buffers that no queue uses at the moment.
#[derive(Default)]
pub(crate) struct TxPool {
    free: Vec<Buffer>,
}

/// See the module documentation.
#[derive(Default)]
pub(crate) struct TxQueue {
    buffer: Buffer,
    /// Bytes at the front that have been sent.
    head: usize,
    /// Frames at the front that have been sent.
    lens_head: usize,
    /// Bytes of the first unsent frame that have been sent.
    partial: usize,
}

impl TxPool {
    fn take(&mut self) -> Buffer {
        self.free.pop().unwrap_or_default()
    }

    fn give(&mut self, mut buffer: Buffer) {
        if self.free.len() < MAX_POOLED && buffer.bytes.capacity() <= MAX_POOLED_BYTES {
            buffer.bytes.clear();
            buffer.lens.clear();
            self.free.push(buffer);
        }
    }
}

impl TxQueue {
    /// Bytes that wait.
    #[inline]
    pub(crate) fn len_bytes(&self) -> usize {
        self.buffer.bytes.len() - self.head
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len_bytes() == 0
    }

    /// Frames that wait, a partly sent one included.
    pub(crate) fn n_frames(&self) -> usize {
        self.buffer.lens.len() - self.lens_head
    }

    /// Appends the frame that `write` appends to the bytes it is given, and
    /// returns its length; 0 if it wrote nothing.
    #[inline]
    pub(crate) fn push(&mut self, pool: &mut TxPool, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        if self.buffer.bytes.capacity() == 0 {
            self.buffer = pool.take();
        }
        let start = self.buffer.bytes.len();
        write(&mut self.buffer.bytes);
        let len = self.buffer.bytes.len() - start;
        if len > 0 {
            self.buffer.lens.push(len as u32);
        }
        len
    }

    /// Takes the last frame back.
    pub(crate) fn pop_last(&mut self) {
        debug_assert!(self.n_frames() > 0);
        if let Some(len) = self.buffer.lens.pop() {
            let keep = self.buffer.bytes.len() - len as usize;
            self.buffer.bytes.truncate(keep);
        }
    }

    /// Everything that waits.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer.bytes[self.head..]
    }

    /// Lengths of the frames that wait, in bytes. Only for queues that are
    /// consumed in whole frames.
    pub(crate) fn frame_lens(&self) -> &[u32] {
        &self.buffer.lens[self.lens_head..]
    }

    /// Removes `n_bytes` from the front; they may end within a frame.
    pub(crate) fn consume(&mut self, pool: &mut TxPool, n_bytes: usize) {
        debug_assert!(n_bytes <= self.len_bytes());
        self.head += n_bytes;
        if self.is_empty() {
            self.clear(pool);
            return;
        }
        let mut sent = self.partial + n_bytes;
        while let Some(&len) = self.buffer.lens.get(self.lens_head)
            && sent >= len as usize
        {
            sent -= len as usize;
            self.lens_head += 1;
        }
        self.partial = sent;
        if self.head >= COMPACT_BYTES && self.head >= self.len_bytes() {
            self.buffer.bytes.drain(..self.head);
            self.buffer.lens.drain(..self.lens_head);
            self.head = 0;
            self.lens_head = 0;
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, pool: &mut TxPool) {
        self.head = 0;
        self.lens_head = 0;
        self.partial = 0;
        if self.buffer.bytes.capacity() > 0 {
            pool.give(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_queue_owns_no_memory() {
        let mut pool = TxPool::default();
        let mut queue = TxQueue::default();
        assert_eq!(queue.push(&mut pool, |out| out.extend([1, 2, 3])), 3);
        assert_eq!(queue.push(&mut pool, |_| {}), 0);
        assert_eq!(queue.n_frames(), 1);
        queue.consume(&mut pool, 3);
        assert_eq!(queue.buffer.bytes.capacity(), 0);
        assert_eq!(pool.free.len(), 1);
        queue.push(&mut pool, |out| out.push(1));
        assert_eq!(pool.free.len(), 0);
    }

    #[test]
    fn a_huge_buffer_is_not_kept() {
        let mut pool = TxPool::default();
        let mut queue = TxQueue::default();
        queue.push(&mut pool, |out| out.resize(MAX_POOLED_BYTES + 1, 0));
        queue.clear(&mut pool);
        assert!(pool.free.is_empty());
    }

    proptest! {
        #[test]
        fn what_is_pushed_comes_out_whatever_the_cuts(
            frames in prop::collection::vec(1..5000_usize, 1..120),
            cuts in prop::collection::vec(1..90_000_usize, 1..20),
        ) {
            let mut pool = TxPool::default();
            let mut queue = TxQueue::default();
            let mut expected = Vec::new();
            let mut got = Vec::new();
            let mut cuts = cuts.iter().cycle();
            for (i, &len) in frames.iter().enumerate() {
                queue.push(&mut pool, |out| out.resize(out.len() + len, i as u8));
                expected.resize(expected.len() + len, i as u8);
                if i % 3 == 2 {
                    let n = queue.len_bytes().min(*cuts.next().unwrap());
                    got.extend_from_slice(&queue.bytes()[..n]);
                    queue.consume(&mut pool, n);
                }
                let waiting: usize = queue.frame_lens().iter().map(|&len| len as usize).sum();
                prop_assert_eq!(waiting - queue.partial, queue.len_bytes());
            }
            got.extend_from_slice(queue.bytes());
            prop_assert_eq!(got, expected);
        }
    }
}
