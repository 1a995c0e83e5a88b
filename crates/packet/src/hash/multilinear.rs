//! A universal hash of every prefix of a name, made pseudo-random by AES.
//!
//! **The sum.** Each component, type and length included, is filled up with
//! zeros to whole blocks of two words `a` and `b`; its length tells where they
//! end, so no two names are the same blocks, nor is a name another one followed
//! by zeros. A name's sum is that of the products `(aᵢ + kᵢ)·(bᵢ + lᵢ)` modulo
//! 2¹²⁸, where `k` and `l` are as many secret words and the additions are
//! modulo 2⁶⁴: the hash NH of UMAC (Black, Halevi, Krawczyk, Krovetz and
//! Rogaway 1999, section 3). Of names with as many blocks the sums are equal
//! with a probability of at most 2⁻⁶⁴ (their theorem 2); of others of at most
//! 2⁻⁶³, since the product of a block that only one has is 0 that often and any
//! other number less often. That holds for any two names, also if an attacker chose them
//! without knowing the words. A prefix's sum is one on the way to
//! that of the whole, so it costs nothing.
//!
//! **The cipher.** Sums would give the words away to one who sees which names
//! collide. So a sum is no hash; the hash is half of its encryption by AES-128,
//! under another key. Universal hash and then cipher is a pseudo-random
//! function as good as the cipher, but with the luck of two sums that collide
//! (Carter and Wegman 1981; Shoup 1996): among `q` names, less than `q²·2⁻⁶⁴`,
//! which is about how often any hash of 64 bits collides.
//!
//! **Long names.** There are secret words for [`CHUNK_BLOCKS`] blocks. After
//! these the sum is enciphered, under a third key, and what comes out is where
//! the sum of the next blocks begins: from different sums, numbers that have
//! nothing to do with each other.
//!
//! Encryption is left to the `aes` crate, which uses what the processor has
//! (AES-NI, VAES, the ARMv8 extension), and where it has nothing gives the same
//! values in constant time. Many blocks at once cost less, so the sums of a
//! burst are collected.

use aes::cipher::{Array, BlockCipherEncrypt as _, KeyInit as _};
use aes::{Aes128Enc, Block};

use super::NameHash;
use super::words::{
    BLOCK_BYTES, WORD_BYTES, short_block, split_short_component, take_component, word_at,
};
use crate::NameView;

/// Blocks for which there are secret words; few names have more.
const CHUNK_BLOCKS: usize = 64;

/// The secret words and the two ciphers.
#[derive(Clone)]
pub(super) struct Multilinear {
    words: [[u64; 2]; CHUNK_BLOCKS],
    between_chunks: Aes128Enc,
    last: Aes128Enc,
}

/// The sums of a burst on their way to the cipher.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// What is beyond the first `n_sums` is void.
    blocks: Vec<Block>,
    n_sums: usize,
}

impl Sums {
    /// Adds a sum for each prefix of `name`, to be written, and says where they begin.
    #[inline(always)]
    pub(super) fn room_for(&mut self, name: NameView<'_>) -> (usize, &mut [Block]) {
        let start = self.n_sums;
        self.n_sums += name.len() + 1;
        if self.blocks.len() < self.n_sums {
            self.blocks.resize(self.n_sums, Block::default());
        }
        (start, &mut self.blocks[start..self.n_sums])
    }
}

/// The sum of the blocks so far.
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: u128,
    /// Index of the next block in its chunk.
    block_idx: usize,
}

impl Sum {
    #[inline(always)]
    fn block(&self) -> Block {
        Array(self.sum.to_le_bytes())
    }

    #[inline(always)]
    fn add(&mut self, [a, b]: [u64; 2], [k, l]: [u64; 2]) {
        let product = u128::from(a.wrapping_add(k)) * u128::from(b.wrapping_add(l));
        self.sum = self.sum.wrapping_add(product);
        self.block_idx += 1;
    }

    fn absorb(&mut self, block: [u64; 2], key: &Multilinear) {
        self.add(block, key.words[self.block_idx]);
        if self.block_idx == CHUNK_BLOCKS {
            self.block_idx = 0;
            self.sum = key.close_chunk(*self);
        }
    }

    /// Takes the first component off `rest` and in.
    fn absorb_component(&mut self, rest: &mut &[u8], key: &Multilinear) {
        let component = take_component(rest).unwrap_or_default();
        if component.len() <= BLOCK_BYTES {
            self.absorb(short_block(component), key);
        } else {
            *self = self.with_long(component, key);
        }
    }

    /// The sum with a component that is longer than a block. By value, lest the
    /// loop around it keep the sum in memory.
    #[inline(never)]
    fn with_long(mut self, component: &[u8], key: &Multilinear) -> Self {
        for block in component.chunks(BLOCK_BYTES) {
            self.absorb(short_block(block), key);
        }
        self
    }
}

impl Multilinear {
    /// Keys made from `secret` by AES-128 in counter mode: its first half is the
    /// key, its second the first counter.
    pub(super) fn new(secret: &[u8; 32]) -> Self {
        let halves: [[u8; 16]; 2] = [0, 16].map(|at| std::array::from_fn(|i| secret[at + i]));
        let generator = Aes128Enc::new(&Array(halves[0]));
        let mut counter = u128::from_le_bytes(halves[1]);
        let mut next = || {
            let mut block = Array(counter.to_le_bytes());
            generator.encrypt_block(&mut block);
            counter = counter.wrapping_add(1);
            block
        };
        Self {
            between_chunks: Aes128Enc::new(&next()),
            last: Aes128Enc::new(&next()),
            words: std::array::from_fn(|_| {
                let block = next();
                [0, WORD_BYTES].map(|pos| word_at(&block, pos))
            }),
        }
    }

    #[cold]
    fn close_chunk(&self, sum: Sum) -> u128 {
        let mut block = sum.block();
        self.between_chunks.encrypt_block(&mut block);
        u128::from_le_bytes(block.0)
    }

    /// The hash of `name`.
    pub(super) fn hash(&self, name: NameView<'_>) -> NameHash {
        let mut sum = Sum::default();
        let mut rest = name.value_bytes();
        let end = rest.last_chunk().map(|end| u128::from_le_bytes(*end));
        // As in `sum_prefixes`.
        for words in &self.words[..CHUNK_BLOCKS - 1] {
            let Some((block, after)) = split_short_component(rest, end) else {
                break;
            };
            sum.add(block, *words);
            rest = after;
        }
        while !rest.is_empty() {
            sum.absorb_component(&mut rest, self);
        }
        let mut block = sum.block();
        self.last.encrypt_block(&mut block);
        NameHash(word_at(&block, 0))
    }

    /// Appends the hashes that come of `sums` to `hashes`, and takes the sums away.
    pub(super) fn push_hashes(&self, sums: &mut Sums, hashes: &mut Vec<NameHash>) {
        let blocks = &mut sums.blocks[..std::mem::take(&mut sums.n_sums)];
        self.last.encrypt_blocks(blocks);
        hashes.extend(blocks.iter().map(|block| NameHash(word_at(block, 0))));
    }

    /// Writes the sum of each prefix of `name` to `sums`, which has room for
    /// just these.
    #[inline(always)]
    pub(super) fn sum_prefixes(&self, name: NameView<'_>, sums: &mut [Block]) {
        let mut sum = Sum::default();
        let mut rest = name.value_bytes();
        let end = rest.last_chunk().map(|end| u128::from_le_bytes(*end));
        let Some((first, longer)) = sums.split_first_mut() else {
            return;
        };
        *first = sum.block();
        // Nearly all components are of one block. The last block of the chunk, which
        // closes it, is left to the general way.
        let mut n_summed = 0;
        for (slot, words) in longer.iter_mut().zip(&self.words[..CHUNK_BLOCKS - 1]) {
            let Some((block, after)) = split_short_component(rest, end) else {
                break;
            };
            sum.add(block, *words);
            *slot = sum.block();
            rest = after;
            n_summed += 1;
        }
        if n_summed < longer.len() {
            self.sum_further_prefixes(sum, rest, &mut longer[n_summed..]);
        }
    }

    /// The same of what follows the first blocks, each of which was a component.
    #[inline(never)]
    fn sum_further_prefixes(&self, mut sum: Sum, mut rest: &[u8], sums: &mut [Block]) {
        for slot in sums {
            sum.absorb_component(&mut rest, self);
            *slot = sum.block();
        }
    }
}
