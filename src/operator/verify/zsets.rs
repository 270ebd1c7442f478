use bytes::Bytes;

use super::Checkup;
use crate::{
    encoding::{Body, ZsetBounds, ZsetOrder, decode_member_score, encode_score},
    operator::{Result, words::Short},
};

impl Checkup<'_, '_, '_> {
    /// Each member has one record in the index, where its score says, and between the bounds. The members are right.
    pub(super) async fn check_zset(&mut self, count: u32, bounds: &ZsetBounds) -> Result<()> {
        let (mut members, mut has_outsiders) = (0, false);
        let mut pages = self.unit.pages(self.records.elements()).await?;
        while let Some(page) = self.job.next_page(&mut pages).await? {
            members += page.len() as u64;
            has_outsiders |= self.check_scores(page, bounds).await?;
            self.ledger.settle(self.job).await?;
        }
        let mut pages = self.unit.pages(self.records.scores()).await?;
        while let Some(page) = self.job.next_page(&mut pages).await? {
            self.check_index(page).await?;
            self.ledger.settle(self.job).await?;
        }
        if members == 0 {
            return self.remove_empty();
        }
        let is_counted = u64::from(count) == members;
        if !is_counted {
            self.note_count(count, members);
        }
        if !is_counted || has_outsiders {
            let bounds = if has_outsiders { ZsetBounds::default() } else { bounds.clone() };
            let count = u32::try_from(members).unwrap_or(u32::MAX);
            self.metadata.body = Body::Zset { count, order: ZsetOrder::Index(bounds) };
            self.save_metadata()?;
        }
        Ok(())
    }

    /// Looks for members in the index. True if some are outside of the bounds.
    async fn check_scores(&mut self, page: Vec<(Bytes, Bytes)>, bounds: &ZsetBounds) -> Result<bool> {
        let mut scored = Vec::with_capacity(page.len());
        let mut has_outsiders = false;
        for (record, value) in page {
            let member = self.records.suffix(record);
            match decode_member_score(&value) {
                Ok(score) if !score.is_nan() => {
                    let place = [&encode_score(score), &*member].concat();
                    if place < bounds.low || (!bounds.high.is_empty() && place >= bounds.high) {
                        self.note(format_args!("member {} is outside of the bounds", Short(&member)));
                        has_outsiders = true;
                    }
                    scored.push((member, score));
                }
                Ok(_) => self.note_left_alone(format_args!("the score of member {} is no number", Short(&member))),
                Err(error) => self.note_left_alone(format_args!("member {}: {error}", Short(&member))),
            }
        }
        let records: Vec<Bytes> = scored.iter().map(|(member, score)| self.records.score(*score, member)).collect();
        let indexed = self.unit.read_many(&records).await?;
        for (((member, score), record), index) in scored.iter().zip(records).zip(indexed) {
            if index.is_none() {
                self.note(format_args!("member {} is not in the index at {score}", Short(member)));
                self.ledger.mend(record, Some(Bytes::new()));
            }
        }
        Ok(has_outsiders)
    }

    /// Looks for what is in the index among the members.
    async fn check_index(&mut self, page: Vec<(Bytes, Bytes)>) -> Result<()> {
        let indexed: Vec<_> = page.iter().map(|(record, _)| self.records.scored(record.clone())).collect();
        let members: Vec<_> = indexed.iter().map(|(member, _)| self.records.element(member)).collect();
        let values = self.unit.read_many(&members).await?;
        for (((record, _), (member, score)), value) in page.into_iter().zip(indexed).zip(values) {
            let found = value.map(|value| decode_member_score(&value));
            match found {
                Some(Ok(found)) if found == score => continue,
                // The member has been named, and is left alone.
                Some(Ok(found)) if found.is_nan() => continue,
                Some(Err(_)) => continue,
                Some(Ok(found)) => {
                    self.note(format_args!("the index has member {} at {score} instead of {found}", Short(&member)));
                }
                None => self.note(format_args!("the index has {} at {score}, which is no member", Short(&member))),
            }
            self.ledger.mend(record, None);
        }
        Ok(())
    }
}
