import { createPieceReader, type Piece } from '../pieces.ts';
import { memberText } from './member-text.ts';
import type { ParsedCall, ParserInput, ReplyEvent, ReplyParser } from './parser.ts';
import { createProse } from './prose.ts';

const openCall = '<tool_call>';
const closeCall = '</tool_call>';
const openThink = '<think>';
const closeThink = '</think>';

/** How far from its end a prompt may have opened the reasoning: `<think>` and some whitespace. */
const promptTail = 4;

/** Hermes, Qwen2.5 and Qwen3: `<think>…</think>`, then text, then `<tool_call>{"name": …, "arguments": {…}}</tool_call>`. */
export function createHermesParser({ tokens, toolNames, promptIds }: ParserInput): ReplyParser {
  const reader = createPieceReader(tokens, [openCall, closeCall, openThink, closeThink]);
  const prose = createProse();
  let state: 'text' | 'reasoning' | 'call' = opensReasoning() ? 'reasoning' : 'text';
  let body = '';

  function opensReasoning(): boolean {
    const tail = promptIds.slice(-promptTail);
    const open = tokens.idOf(openThink);
    const close = tokens.idOf(closeThink);
    return open !== null && tail.lastIndexOf(open) > (close === null ? -1 : tail.lastIndexOf(close));
  }

  function enter(next: typeof state): void {
    state = next;
    body = '';
    if (next !== 'text') prose.reset();
  }

  function say(text: string): ReplyEvent[] {
    if (state === 'call') {
      body += text;
      return [];
    }
    const shown = prose.push(text);
    return shown === '' ? [] : [{ kind: state, text: shown }];
  }

  function finishCall(closed: boolean): ReplyEvent[] {
    const call = readCall(body, closed, toolNames);
    enter('text');
    const given = call.status === 'ok' || (call.status === 'unknown-tool' && toolNames.size > 0);
    return given ? [{ kind: 'call', call }] : [{ kind: 'faulty-call', call }, ...say(call.raw)];
  }

  function mark(marker: string): ReplyEvent[] {
    if (state === 'call' && marker === closeCall) return finishCall(true);
    if (state === 'call' && marker === openCall) {
      const events = finishCall(false);
      enter('call');
      return events;
    }
    if (state === 'text' && marker === openCall) enter('call');
    else if (state === 'text' && marker === openThink) enter('reasoning');
    else if (state === 'reasoning' && marker === closeThink) {
      enter('text');
      prose.reset();
    } else return say(marker);
    return [];
  }

  const read = (pieces: readonly Piece[]): ReplyEvent[] =>
    pieces.flatMap((piece) => ('marker' in piece ? mark(piece.marker) : say(piece.text)));

  return {
    push: (ids) => read(reader.push(ids)),
    end: () => {
      const events = read(reader.end());
      return state === 'call' ? [...events, ...finishCall(false)] : events;
    },
  };
}

function readCall(body: string, closed: boolean, toolNames: ReadonlySet<string>): ParsedCall {
  const raw = openCall + body + (closed ? closeCall : '');
  const broken = (status: ParsedCall['status']): ParsedCall => ({ status, name: '', arguments: '', raw });
  if (!closed) return broken('unclosed');
  const call = parseObject(body);
  if (call === null) return broken('invalid-json');
  const { name, arguments: given } = call;
  if (typeof name !== 'string' || name === '') return broken('missing-name');
  if (given !== undefined && !isObject(given)) return broken('invalid-arguments');
  const text = given === undefined ? '{}' : (memberText(body, 'arguments') ?? JSON.stringify(given));
  return { status: toolNames.has(name) ? 'ok' : 'unknown-tool', name, arguments: text, raw };
}

function parseObject(text: string): { readonly name?: unknown; readonly arguments?: unknown } | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
