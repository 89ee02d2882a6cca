import { z } from 'zod';
import type { Tool } from '../conversation.ts';
import { createPieceReader, type Piece } from '../pieces.ts';
import type { ParserInput, ReplyEvent, ReplyParser } from './parser.ts';
import { createPlainParser } from './plain.ts';
import { createProse } from './prose.ts';

/**
 * Parses the replies of a model without a tool-call syntax, which writes its command as a fenced block of a shell: `bash`, `sh`,
 * `shell`, `zsh`, or `mswea_bash_command`, which mini-SWE-agent asks for and models trained on its work keep to. The block is a
 * call if the request offers exactly one tool that needs a command and nothing else. It stays in the text as well, since such
 * a template would not print the call when the conversation is rendered again.
 */
export function createCommandParser(input: ParserInput): ReplyParser {
  const shell = shellOf(input.tools);
  return shell === null ? createPlainParser(input) : createBlockParser(input, shell);
}

function createBlockParser(input: ParserInput, { name, argument }: Shell): ReplyParser {
  const reader = createPieceReader(input.tokens, []);
  const prose = createProse();
  /** The lines of the open block; null outside a block. */
  let lines: string[] | null = null;
  let line = '';

  function endLine(): ReplyEvent[] {
    const whole = line;
    line = '';
    if (lines === null) {
      if (opening.test(whole)) lines = [];
      return [];
    }
    if (!closing.test(whole)) {
      lines.push(whole);
      return [];
    }
    const command = lines.join('\n');
    lines = null;
    return command.trim() === '' ? [] : [callOf(command)];
  }

  function callOf(command: string): ReplyEvent {
    const args = JSON.stringify({ [argument]: command });
    return { kind: 'call', call: { status: 'ok', id: null, name, arguments: args, raw: command } };
  }

  function unclosed(): ReplyEvent[] {
    if (lines === null) return [];
    const raw = lines.join('\n');
    return [{ kind: 'faulty-call', call: { status: 'unclosed', id: null, name: '', arguments: '', raw } }];
  }

  function showText(text: string): ReplyEvent[] {
    const shown = prose.push(text);
    return shown === '' ? [] : [{ kind: 'text', text: shown }];
  }

  function read(piece: Piece): ReplyEvent[] {
    const [first = '', ...rest] = sourceOf(piece).split('\n');
    line += first;
    const events = showText(first);
    for (const next of rest) {
      events.push(...endLine(), ...showText(`\n${next}`));
      line = next;
    }
    return events;
  }

  return {
    push: (ids) => reader.push(ids).flatMap(read),
    end: () => [...reader.end().flatMap(read), ...endLine(), ...unclosed()],
  };
}

const sourceOf = (piece: Piece): string => ('text' in piece ? piece.text : piece.marker);

const opening = /^```(?:bash|sh|shell|zsh|mswea_bash_command)[ \t\r]*$/;
const closing = /^```[ \t\r]*$/;

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
