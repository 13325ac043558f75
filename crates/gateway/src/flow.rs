//! An answer on its way to the agent, counted as it passes.
//!
//! Each piece goes on as soon as it is there, and the next one is only asked
//! for when the agent has taken it. However the answer ends, and also when the
//! agent hangs up, what has passed is counted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use blueflame_core::money::{Spend, Usage};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;

use crate::allowance::{Awaited, Ticket};
use crate::calls::Hearing;
use crate::facts::Fact;
use crate::gateway::Inner;
use crate::meter::Meter;
use crate::prices::Price;
use crate::recording::Open;
use crate::upstream::{Body, BodyError};

/// The count of one request. Dropping it settles the account.
#[derive(Debug)]
pub(crate) struct Account {
    gateway: Arc<Inner>,
    ticket: Option<Ticket>,
    meter: Meter,
    price: Price,
    reported: Usage,
    /// An answer with an error costs nothing, and neither does a request that
    /// never reached anyone.
    free: bool,
    recorded: Option<Open>,
    /// Hears which calls the model asks for, where that matters.
    hearing: Option<Hearing>,
}

impl Account {
    pub(crate) fn open(gateway: Arc<Inner>, ticket: Ticket, meter: Meter, price: Price) -> Self {
        Account {
            gateway,
            ticket: Some(ticket),
            meter,
            price,
            reported: Usage::default(),
            free: true,
            recorded: None,
            hearing: None,
        }
    }

    /// The request goes out: from now on it may cost something.
    pub(crate) fn sent(&mut self) {
        self.free = false;
    }

    /// The request cost nothing after all.
    pub(crate) fn cost_nothing(&mut self) {
        self.free = true;
    }

    pub(crate) fn begin(&mut self, streamed: bool, recorded: Option<Open>) {
        self.recorded = recorded;
        if streamed {
            let dialect = self.meter.dialect();
            let hearing = |calls| Hearing::new(calls, dialect);
            self.hearing = self.gateway.calls.clone().map(hearing);
            self.meter.begin_stream();
        } else {
            self.meter.begin_whole();
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        if let Some(recorded) = &mut self.recorded {
            recorded.take(chunk);
        }
        if self.free {
            return;
        }
        if let Some(hearing) = &mut self.hearing {
            hearing.take(chunk);
        }
        self.meter.take(chunk);
        let reported = self.meter.reported();
        if reported != self.reported
            && let Some(ticket) = &self.ticket
        {
            self.reported = reported;
            let spend = ticket.report(self.spend(reported));
            self.gateway.facts.tell(Fact::Usage { spend });
        }
    }

    fn spend(&self, usage: Usage) -> Spend {
        Spend { usage, cost: self.price.cost(&usage) }
    }

    /// The answer is over; whether it was whole.
    fn end(&mut self) -> bool {
        self.meter.end();
        let whole = self.free || self.meter.is_complete();
        self.settle(whole);
        whole
    }

    fn settle(&mut self, whole: bool) {
        if let Some(ticket) = self.ticket.take() {
            let usage = if self.free { self.reported } else { self.meter.usage() };
            let spend = ticket.settle(self.spend(usage));
            if usage != self.reported {
                self.gateway.facts.tell(Fact::Usage { spend });
            }
        }
        if let Some(recorded) = self.recorded.take() {
            self.gateway.record(recorded, whole);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.settle(false);
    }
}

/// What is counted in the answer.
pub(crate) enum Counted {
    /// Nothing: the request is free of charge.
    Nothing,
    Usage(Box<Account>),
    /// It was over, or it failed, and that has been dealt with.
    Done,
}

/// The body of the answer to the agent.
pub(crate) struct Flow {
    gateway: Arc<Inner>,
    upstream: Body,
    counted: Counted,
    /// Whether the provider answered without an error.
    good: bool,
    idle: Duration,
    /// Runs only while the provider is waited for: an agent that takes its
    /// time must not make the provider look slow.
    waiting: Option<(Pin<Box<Sleep>>, Awaited)>,
    /// What broke the answer off, until it is passed on.
    broken: Option<BodyError>,
}

impl Flow {
    pub(crate) fn new(gateway: Arc<Inner>, upstream: Body, counted: Counted, good: bool) -> Self {
        let idle = gateway.timeouts.idle;
        Flow { gateway, upstream, counted, good, idle, waiting: None, broken: None }
    }

    /// The answer is broken off: but first what came before must leave, which
    /// it does when there is nothing to do for a moment.
    fn break_off(&mut self, error: BodyError, context: &mut Context<'_>) {
        self.fail(&error.to_string());
        self.broken = Some(error);
        context.waker().wake_by_ref();
    }

    fn fail(&mut self, why: &str) {
        self.gateway.breaker.failed(Instant::now());
        self.gateway.facts.tell(Fact::UpstreamFailed { why: self.gateway.scrub(why) });
        self.counted = Counted::Done;
    }

    fn finish(&mut self) {
        let whole = match std::mem::replace(&mut self.counted, Counted::Done) {
            Counted::Done => return,
            Counted::Nothing => true,
            Counted::Usage(mut account) => account.end(),
        };
        if !whole {
            self.fail("the answer broke off before its end");
        } else if self.good {
            self.gateway.breaker.succeeded();
        }
    }
}

impl HttpBody for Flow {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if let Some(error) = this.broken.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match Pin::new(&mut this.upstream).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                this.waiting = None;
                if let (Counted::Usage(account), Some(chunk)) =
                    (&mut this.counted, frame.data_ref())
                {
                    account.take(chunk);
                }
                // Whoever sends the answer may know its length, and not come
                // back for the end.
                if this.upstream.is_end_stream() {
                    this.finish();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                this.waiting = None;
                this.break_off(error, context);
                Poll::Pending
            }
            Poll::Ready(None) => {
                this.waiting = None;
                this.finish();
                Poll::Ready(None)
            }
            Poll::Pending => {
                let idle = this.idle;
                let (waiting, _) = this.waiting.get_or_insert_with(|| {
                    let awaited = this.gateway.allowance.await_provider();
                    (Box::pin(tokio::time::sleep(idle)), awaited)
                });
                std::task::ready!(waiting.as_mut().poll(context));
                let why = format!("the provider sent nothing for {} s", idle.as_secs());
                this.waiting = None;
                this.break_off(why.into(), context);
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.upstream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.upstream.size_hint()
    }
}
