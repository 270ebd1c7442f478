//! Command templates, written as Redis' manual writes a command, and the random commands that they stand for.
//!
//! ```text
//! SET skey value [NX|XX] [GET] [EX ttl|KEEPTTL]
//! MSET (skey value)...
//! ~ FLUSHALL
//! ```
//!
//! A word in capitals stands for itself, one in small letters for an argument of that kind (see [`super::atoms`]);
//! `[a|b]` is one of them or nothing, `(a|b)` one of them, `...` repeats what is before it up to three times. A template
//! that begins with `~` is tried rarely, one with `=` is never spoiled.

use rand::RngExt;
use rand::rngs::StdRng;

use super::atoms::{self, Atom};

/// The arguments of one command, its name first.
pub(crate) type Args = Vec<Vec<u8>>;

/// One template.
pub(crate) struct Template {
    nodes: Vec<Node>,
    rare: bool,
    exact: bool,
    /// It has an argument that sets a time: changing it at random would make keys expire while the test runs.
    sets_time: bool,
}

enum Node {
    Word(&'static str),
    Argument(&'static Atom),
    Choice { optional: bool, options: Vec<Vec<Node>> },
    Repeated(Box<Node>),
}

impl Template {
    pub(crate) fn parse(text: &'static str) -> Self {
        let template = text.trim_start_matches(['~', '=', ' ']);
        let marks = &text[..text.len() - template.len()];
        let (rare, exact) = (marks.contains('~'), marks.contains('='));
        let mut tokens = tokens(template);
        tokens.reverse();
        let nodes = parse_sequence(&mut tokens);
        assert!(tokens.is_empty(), "unbalanced: {text}");
        let sets_time = nodes.iter().any(Node::sets_time);
        Self { nodes, rare, exact, sets_time }
    }

    /// One of many templates.
    pub(crate) fn pick<'a>(templates: &[&'a Template], rng: &mut StdRng) -> &'a Template {
        const RARITY: f64 = 0.05;
        loop {
            let chosen = templates[rng.random_range(0..templates.len())];
            if !chosen.rare || rng.random_bool(RARITY) {
                return chosen;
            }
        }
    }

    /// A random command of this form, or once in a while one that is slightly wrong.
    pub(crate) fn generate(&self, rng: &mut StdRng) -> Args {
        const WRONG: f64 = 0.06;
        let mut args = Vec::new();
        self.nodes.iter().for_each(|node| node.generate(rng, &mut args));
        if !self.exact && rng.random_bool(WRONG) {
            self.spoil(rng, &mut args);
        }
        args
    }

    fn spoil(&self, rng: &mut StdRng, args: &mut Args) {
        let at = rng.random_range(0..args.len());
        match rng.random_range(0..5) {
            0 if args.len() > 1 => drop(args.pop()),
            1 => args.push(atoms::WILD.pick(rng)),
            2 => args[0].make_ascii_lowercase(),
            3 if at > 0 && !self.sets_time => args[at] = atoms::WILD.pick(rng),
            4 if at > 0 && !self.sets_time => args.insert(at, args[at].clone()),
            _ => {}
        }
    }
}

impl Node {
    fn generate(&self, rng: &mut StdRng, into: &mut Args) {
        match self {
            Self::Word(word) => into.push(word.as_bytes().to_vec()),
            Self::Argument(atom) => into.push(atom.pick(rng)),
            Self::Choice { optional: true, .. } if rng.random_bool(0.6) => {}
            Self::Choice { options, .. } => {
                let chosen = &options[rng.random_range(0..options.len())];
                chosen.iter().for_each(|node| node.generate(rng, into));
            }
            Self::Repeated(node) => (0..rng.random_range(1..=3)).for_each(|_| node.generate(rng, into)),
        }
    }

    fn sets_time(&self) -> bool {
        match self {
            Self::Word(_) => false,
            Self::Argument(atom) => atom.is_time,
            Self::Choice { options, .. } => options.iter().flatten().any(Self::sets_time),
            Self::Repeated(node) => node.sets_time(),
        }
    }
}

/// Words and punctuation.
fn tokens(text: &'static str) -> Vec<&'static str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let is_mark = |c: char| "[]()|".contains(c);
        let length = match rest {
            _ if rest.starts_with("...") => 3,
            _ if rest.starts_with(is_mark) => 1,
            _ => {
                let word = rest.find(|c: char| is_mark(c) || c.is_whitespace()).unwrap_or(rest.len());
                rest[..word].find("...").unwrap_or(word)
            }
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Reads nodes until the end or a mark that closes; the tokens are in reverse.
fn parse_sequence(tokens: &mut Vec<&'static str>) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    while let Some(token) = tokens.pop() {
        let node = match token {
            "[" => Node::Choice { optional: true, options: parse_options(tokens, "]") },
            "(" => Node::Choice { optional: false, options: parse_options(tokens, ")") },
            "]" | ")" | "|" => {
                tokens.push(token);
                break;
            }
            "..." => Node::Repeated(Box::new(nodes.pop().expect("something to repeat"))),
            word if word.starts_with(|c: char| c.is_ascii_lowercase()) => Node::Argument(atoms::named(word)),
            word => Node::Word(word),
        };
        nodes.push(node);
    }
    nodes
}

fn parse_options(tokens: &mut Vec<&'static str>, close: &str) -> Vec<Vec<Node>> {
    let mut options = vec![parse_sequence(tokens)];
    loop {
        match tokens.pop() {
            Some("|") => options.push(parse_sequence(tokens)),
            Some(token) if token == close => return options,
            other => panic!("expected {close}, found {other:?}"),
        }
    }
}
