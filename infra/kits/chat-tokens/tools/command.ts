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
 * shorter than the opening one is text. A heredoc without its end leaves open where the block ends.
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
  const thought = input.thinks ? text.lastIndexOf('</think>') : -1;
  const isOpen = input.thinks && thought < 0 && (opensReasoning(input) || text.includes('<think>'));
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
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const opened = opening.exec(lines[at] ?? '')?.[1];
    if (opened === undefined) continue;
    const { end, status } = endOfBlock(lines, at + 1, opened.length);
    blocks.push({ command: lines.slice(at + 1, end).join('\n'), status });
    at = end;
  }
  return blocks;
}

/** Finds the line that closes a block. */
function endOfBlock(lines: readonly string[], from: number, length: number): { end: number; status: Block['status'] } {
  let depth = 0;
  for (let at = from; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const [, ticks = '', language = ''] = fence.exec(line) ?? [];
    if (ticks.length >= length) {
      if (language.trim() !== '') depth += 1;
      else if (depth === 0) return { end: at, status: 'ok' };
      else depth -= 1;
    }
    for (const { indented, word } of heredocsIn(line)) {
      do at += 1;
      while (at < lines.length && !endsHeredoc(lines[at] ?? '', indented, word));
      if (at === lines.length) return { end: at, status: 'ambiguous' };
    }
  }
  return { end: lines.length, status: 'unclosed' };
}

const heredoc = /(?<!<)<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([A-Za-z_]\w*))/g;

/** The heredocs that begin in a line of a shell. `((` begins arithmetic, in which `<<` shifts a number. */
function heredocsIn(line: string): { readonly indented: boolean; readonly word: string }[] {
  const found = [...(line.includes('((') ? '' : line).matchAll(heredoc)];
  return found.map(([, dash, ...words]) => ({ indented: dash === '-', word: words.find((each) => each) ?? '' }));
}

const endsHeredoc = (line: string, indented: boolean, word: string): boolean => {
  const found = line.replace(/\r$/, '');
  return (indented ? found.replace(/^\t+/, '') : found) === word;
};

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
