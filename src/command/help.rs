use crate::resp::Reply;

/// The reply to `container HELP`: a heading, what each subcommand is and does, and HELP itself.
pub(super) fn help(container: &str, subcommands: &[&'static str]) -> Reply {
    let heading = format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    let lines = subcommands.iter().chain(&["HELP", "    Print this help."]);
    Reply::Array(std::iter::once(Reply::status(heading)).chain(lines.map(|line| Reply::status(*line))).collect())
}
