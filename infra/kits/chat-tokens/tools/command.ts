import { z } from 'zod';
import type { Tool } from '../conversation.ts';
import { createPieceReader, type Piece } from '../pieces.ts';
import { opensReasoning } from './delimited.ts';
import type { ParserInput, ReplyEvent, ReplyParser } from './parser.ts';
import { createPlainParser } from './plain.ts';
import { createProse } from './prose.ts';

/**
 * Parses the replies of a model without a tool-call syntax, which writes its command as a fenced block of a shell: `bash`, `sh`,
 * `shell`, `zsh`, or `mswea_bash_command`, which mini-SWE-agent asks for and models trained on its work keep to. The block is a
 * call if the request offers exactly one tool that needs a command and nothing else. It stays in the text as well, since such
 * a template would not print the call when the conversation is rendered again.
 *
 * Nesting: a fence inside a heredoc is part of it, a fence with a language opens a block within the block, and a fence that is
 * shorter than the opening one is text. Where something like a heredoc has no end, a further closing fence leaves open where the block
 * ends.
 *
 * Repairs: none.
 *
 * Reasoning, where the template knows it: a block before `</think>` is a thought, and one in reasoning that never ends is
 * counted and not given.
 */
export function createCommandParser(input: ParserInput): ReplyParser {
  const shell = shellOf(input.tools);
  return shell === null ? createPlainParser(input) : createBlockParser(input, shell);
}

function createBlockParser(input: ParserInput, shell: Shell): ReplyParser {
  const reader = createPieceReader(input.tokens, []);
  const prose = createProse();
  const parts: string[] = [];

  function read(piece: Piece): ReplyEvent[] {
    const text = 'text' in piece ? piece.text : piece.marker;
    parts.push(text);
    const shown = prose.push(text);
    return shown === '' ? [] : [{ kind: 'text', text: shown }];
  }

  return {
    push: (ids) => reader.push(ids).flatMap(read),
    end: () => [...reader.end().flatMap(read), ...callsIn(parts.join(''), input, shell)],
  };
}

function callsIn(text: string, input: ParserInput, { name, argument }: Shell): ReplyEvent[] {
  const thinks = input.thinks && (opensReasoning(input) || text.includes('<think>'));
  const thought = thinks ? text.indexOf('</think>') : -1;
  const isOpen = thinks && thought < 0;
  return blocksIn(text.slice(thought < 0 ? 0 : thought + '</think>'.length)).flatMap(
    ({ command, status }): ReplyEvent[] => {
      if (command.trim() === '') return [];
      const call = { id: null, raw: command };
      if (status === 'ok' && !isOpen) {
        return [{ kind: 'call', call: { ...call, status, name, arguments: JSON.stringify({ [argument]: command }) } }];
      }
      const fault = status === 'ok' ? 'unclosed' : status;
      return [{ kind: 'faulty-call', call: { ...call, status: fault, name: '', arguments: '' } }];
    },
  );
}

interface Block {
  readonly command: string;
  readonly status: 'ok' | 'unclosed' | 'ambiguous';
}

const opening = /^(`{3,})(?:bash|sh|shell|zsh|mswea_bash_command)[ \t\r]*$/;
const fence = /^(`{3,})([^`]*)$/;

function blocksIn(text: string): readonly Block[] {
  const lines = text.split('\n');
  const heredocEnd = heredocEnds(lines);
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const opened = opening.exec(lines[at] ?? '')?.[1];
    if (opened === undefined) continue;
    const { end, status } = endOfBlock(lines, at + 1, { length: opened.length, heredocEnd });
    blocks.push({ command: lines.slice(at + 1, end).join('\n'), status });
    at = end;
  }
  return blocks;
}

interface Fenced {
  /** The number of backticks of the opening fence. */
  readonly length: number;
  readonly heredocEnd: HeredocEnd;
}

/** Finds the line that closes a block. */
function endOfBlock(
  lines: readonly string[],
  from: number,
  { length, heredocEnd }: Fenced,
): { end: number; status: Block['status'] } {
  let isDoubtful = false;
  let at = from;
  /** Passes over the heredocs of a line. One that never ends may be none, as in `cout << x`. */
  const passHeredocs = (line: string): void => {
    for (const found of heredocsIn(line)) {
      const end = heredocEnd(found, at);
      if (end === null) isDoubtful = true;
      else at = end;
    }
  };
  for (let depth = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const kind = fenceOf(line, length);
    if (kind === 'opens') depth += 1;
    else if (kind === 'closes' && depth > 0) depth -= 1;
    else if (kind === 'closes') {
      const isUnsure = isDoubtful && closesMore(lines.slice(at + 1), length);
      return isUnsure ? { end: lines.length, status: 'ambiguous' } : { end: at, status: 'ok' };
    }
    passHeredocs(line);
  }
  return { end: lines.length, status: 'unclosed' };
}

/** Whether a line is a fence of at least this length, and of which kind: only one that opens a block has a language. */
function fenceOf(line: string, length: number): 'opens' | 'closes' | null {
  const [, ticks = '', language = ''] = fence.exec(line) ?? [];
  if (ticks.length < length) return null;
  return language.trim() === '' ? 'closes' : 'opens';
}

/** Whether lines have a closing fence without one that opens. */
function closesMore(lines: readonly string[], length: number): boolean {
  let depth = 0;
  for (const line of lines) {
    const kind = fenceOf(line, length);
    if (kind === 'opens') depth += 1;
    if (kind === 'closes') depth -= 1;
    if (depth < 0) return true;
  }
  return false;
}

const heredoc = /(?<!<)<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([A-Za-z_]\w*))/g;

interface Heredoc {
  /** Whether tabs may stand before its end. */
  readonly indented: boolean;
  readonly word: string;
}

/** The heredocs that begin in a line of a shell. `((` begins arithmetic, in which `<<` shifts a number. */
function heredocsIn(line: string): readonly Heredoc[] {
  const found = [...(line.includes('((') ? '' : line).matchAll(heredoc)];
  return found.map(([, dash, ...words]) => ({ indented: dash === '-', word: words.find((each) => each) ?? '' }));
}

/** Returns the line that ends a heredoc of a line; null if none does. */
type HeredocEnd = (heredoc: Heredoc, line: number) => number | null;

/** Prepares the search, since a reply may begin a heredoc in each of its lines. */
function heredocEnds(lines: readonly string[]): HeredocEnd {
  const plain = lines.map((line) => line.replace(/\r$/, ''));
  const withoutTabs = plain.map((line) => line.replace(/^\t+/, ''));
  const lasts = [plain, withoutTabs].map((all) => new Map(all.map((line, index) => [line, index])));
  return ({ indented, word }, line) => {
    const last = lasts[indented ? 1 : 0]?.get(word) ?? -1;
    return last <= line ? null : (indented ? withoutTabs : plain).indexOf(word, line + 1);
  };
}

interface Shell {
  readonly name: string;
  readonly argument: string;
}

const commandNames: ReadonlySet<string> = new Set(['command', 'cmd', 'script']);
const schema = z.looseObject({
  required: z.tuple([z.string()]),
  properties: z.record(z.string(), z.looseObject({ type: z.unknown() })),
});

/** Finds the shell tool by its schema, not its name. Null when there is none, or more than one. */
function shellOf(tools: readonly Tool[]): Shell | null {
  const shells = tools.flatMap(({ name, parameters }): Shell[] => {
    const found = schema.safeParse(parameters).data;
    const argument = found?.required[0] ?? '';
    return commandNames.has(argument) && found?.properties[argument]?.type === 'string' ? [{ name, argument }] : [];
  });
  return shells.length === 1 ? (shells[0] ?? null) : null;
}
