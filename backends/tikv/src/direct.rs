//! Requests to the leader of a region itself, past the client of the cluster, which needs several tasks for one. Only where the
//! client can take over if the region is not where it was.

use prost::Message;
use tikv_client::Error;
use tonic::{client::Grpc, codec::ProstCodec, codegen::http::uri::PathAndQuery, transport::Channel};

use crate::{
    connection::MESSAGE_BYTES_MAX,
    placement::{Epoch, Peer},
    regions::Home,
};

/// Asks the leader of a region.
pub(crate) async fn ask<Q, A>(home: &Home, method: &'static str, question: Q) -> Result<A, Error>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut server = Grpc::new(home.server.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
    call(&mut server, method, question).await
}

/// Asks a server of the cluster.
pub(crate) async fn call<Q, A>(server: &mut Grpc<Channel>, method: &'static str, question: Q) -> Result<A, Error>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    server.ready().await?;
    let codec: ProstCodec<Q, A> = ProstCodec::default();
    Ok(server.unary(tonic::Request::new(question), PathAndQuery::from_static(method), codec).await?.into_inner())
}

/// Which region a request is for.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Context {
    #[prost(uint64, tag = "1")]
    pub(crate) region: u64,
    #[prost(message, optional, tag = "2")]
    pub(crate) epoch: Option<Epoch>,
    #[prost(message, optional, tag = "3")]
    pub(crate) peer: Option<Peer>,
}

/// What it is enough to know of that it is there.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Something {}
