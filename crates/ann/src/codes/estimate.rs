//! Estimates of distances, from a prepared query and blocks of memory.

use super::code_query::CodeQuery;
use super::space::EstimateKind;
use super::{CodeKind, CodeMeta, Codebook, META_OFFSET};
use crate::kernels::kernels;

impl Codebook {
    /// Estimates the distance from the query to each block. A pointer leads to the block's code,
    /// and its [`CodeMeta`] is [`META_OFFSET`] bytes after the code. The query was prepared by this
    /// codebook.
    ///
    /// # Safety
    /// Each pointer leads to a block of this codebook's layout, aligned to 64 bytes, whose code and
    /// meta are initialised and not written to meanwhile.
    pub(crate) unsafe fn estimate(
        &self,
        query: &mut CodeQuery,
        blocks: &[*const u8],
        out: &mut [f32],
    ) {
        assert_eq!(blocks.len(), out.len());
        if blocks.is_empty() {
            return;
        }
        // SAFETY: the caller's promise.
        unsafe {
            match self.parts.kind {
                CodeKind::Nibbles | CodeKind::Bytes => self.estimate_levels(query, blocks, out),
                CodeKind::Floats => self.estimate_floats(query, blocks, out),
                CodeKind::Bits => self.count_bits(query, blocks, out),
            }
        }
    }

    /// Estimates distances from codes of nibbles or bytes.
    ///
    /// # Safety
    /// As for [`Codebook::estimate`], with nibbles or bytes.
    unsafe fn estimate_levels(&self, query: &mut CodeQuery, blocks: &[*const u8], out: &mut [f32]) {
        let kernel = match self.parts.kind {
            CodeKind::Nibbles => kernels().dots_u4,
            _ => kernels().dots_u8,
        };
        assert_eq!(query.levels.len(), self.padded_dimensions());
        query.products.resize(blocks.len(), 0);
        // SAFETY: the caller's promise; the query is as long as the codes.
        unsafe { kernel(&query.levels, blocks, &mut query.products) };
        if self.centres.len() == 0 {
            let base = query.terms.base();
            // SAFETY: the caller's promise.
            return unsafe { self.estimate_from(query, blocks, out, |_| base) };
        }
        for &block in blocks {
            // SAFETY: the caller's promise.
            let centre = unsafe { self.meta(block) }.centre;
            self.know_base(query, centre);
        }
        let base = |meta: &CodeMeta| query.base_of(meta.centre);
        // SAFETY: the caller's promise.
        unsafe { self.estimate_from(query, blocks, out, base) };
    }

    /// Makes estimates of the products of levels. `base` gives the base of a code's centre.
    ///
    /// # Safety
    /// As for [`Codebook::estimate`], with nibbles or bytes.
    unsafe fn estimate_from(
        &self,
        query: &CodeQuery,
        blocks: &[*const u8],
        out: &mut [f32],
        base: impl Fn(&CodeMeta) -> f32 + Copy,
    ) {
        let (terms, products) = (query.terms, &query.products);
        let estimate = |space: EstimateKind| {
            move |product, meta: &CodeMeta| {
                space.finish(terms.estimate(product, meta, base(meta)), meta)
            }
        };
        // Each space has a loop of its own: asking for it at each code would take as long as the
        // estimate.
        // SAFETY: the caller's promise.
        unsafe {
            match query.space {
                EstimateKind::Metric | EstimateKind::Product => {
                    self.for_each_block(products, blocks, out, estimate(EstimateKind::Metric));
                }
                EstimateKind::Distance => {
                    self.for_each_block(products, blocks, out, estimate(EstimateKind::Distance));
                }
                space @ EstimateKind::Inner { .. } => {
                    self.for_each_block(products, blocks, out, estimate(space));
                }
            }
        }
    }

    /// Estimates from products, four blocks at a time, which become the lanes of a register. That
    /// takes a nanosecond a code instead of two, where the kernel takes five.
    ///
    /// # Safety
    /// As for [`Codebook::estimate`].
    #[inline(always)]
    unsafe fn for_each_block(
        &self,
        products: &[i32],
        blocks: &[*const u8],
        out: &mut [f32],
        estimate: impl Fn(i32, &CodeMeta) -> f32,
    ) {
        let (block_fours, blocks) = blocks.as_chunks::<4>();
        let (product_fours, products) = products.as_chunks::<4>();
        let (out_fours, out) = out.as_chunks_mut::<4>();
        let fours = block_fours.iter().zip(product_fours);
        for (out, (blocks, products)) in out_fours.iter_mut().zip(fours) {
            // Loops, as the compiler calls functions of arrays instead of unrolling them.
            let mut metas = [CodeMeta::default(); 4];
            for (meta, &block) in metas.iter_mut().zip(blocks) {
                // SAFETY: the caller's promise.
                *meta = unsafe { self.meta(block) };
            }
            for (out, (&product, meta)) in out.iter_mut().zip(products.iter().zip(&metas)) {
                *out = estimate(product, meta);
            }
        }
        for (out, (&block, &product)) in out.iter_mut().zip(blocks.iter().zip(products)) {
            // SAFETY: the caller's promise.
            let meta = unsafe { self.meta(block) };
            *out = estimate(product, &meta);
        }
    }

    /// Measures distances from codes of floats.
    ///
    /// # Safety
    /// As for [`Codebook::estimate`], with floats.
    unsafe fn estimate_floats(&self, query: &CodeQuery, blocks: &[*const u8], out: &mut [f32]) {
        assert_eq!(query.vector.len(), self.padded_dimensions());
        if query.space == EstimateKind::Product {
            // SAFETY: the caller's promise; the query is as long as the codes.
            unsafe { (kernels().dots_f32)(&query.vector, blocks, out) };
            for out in out.iter_mut() {
                *out *= -2.0;
            }
        } else {
            // SAFETY: the caller's promise; the query is as long as the codes.
            unsafe { (kernels().squared_l2s_f32)(&query.vector, blocks, out) };
        }
        for (out, &block) in out.iter_mut().zip(blocks) {
            // SAFETY: the caller's promise.
            let meta = unsafe { self.meta(block) };
            *out = query.space.finish(*out, &meta);
        }
    }

    /// Counts the bits in which codes differ from the query.
    ///
    /// # Safety
    /// As for [`Codebook::estimate`], with bits.
    unsafe fn count_bits(&self, query: &mut CodeQuery, blocks: &[*const u8], out: &mut [f32]) {
        assert_eq!(query.bits.len(), self.code_bytes);
        query.differences.resize(blocks.len(), 0);
        // SAFETY: the caller's promise; the query is as long as the codes.
        unsafe { (kernels().differing_bits)(&query.bits, blocks, &mut query.differences) };
        for (out, &bits) in out.iter_mut().zip(&query.differences) {
            *out = bits as f32;
        }
    }

    /// Reads the meta of a block.
    ///
    /// # Safety
    /// `block` leads to a block of this codebook's layout.
    #[inline]
    unsafe fn meta(&self, block: *const u8) -> CodeMeta {
        // SAFETY: the caller's promise; `CodeMeta` needs four bytes' alignment and has more.
        unsafe {
            block
                .add(self.code_bytes + META_OFFSET)
                .cast::<CodeMeta>()
                .read()
        }
    }
}
