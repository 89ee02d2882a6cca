import { randomUUID } from 'node:crypto';
import { isRecord } from '../../../is-record.ts';
import { limits } from '../../limits.ts';
import { findList } from './find-list.ts';
import { createKeptBody, type KeptBody } from './kept-body.ts';
import { bytesFrom, lengthOf, type Pieces } from './pieces.ts';
import { countValues } from './values.ts';

/** A body as JSON, and the number of values in it, which is counted up to one more than `limits.bodyValues`. */
export interface ParsedBody {
  readonly value: unknown;
  readonly values: number;
}

/** The number of bodies that are kept: enough for an agent and the sub-agents that it runs at the same time. */
const keptBodies = 4;

/** Stands for the known items while the rest is parsed. Random, so that no client can write it. */
const placeholder = randomUUID();

/**
 * Creates a parser for the bodies of one client, which list a conversation under `key`. Clients send the whole conversation
 * with every request: if its list begins, byte by byte, like that of an earlier body, only the rest is parsed, and the items
 * before it are the very objects of the earlier body. The result equals that of JSON.parse; throws a SyntaxError.
 */
export function createGrowingJson(key: string): (pieces: Pieces) => ParsedBody {
  let kept: readonly KeptBody[] = [];

  /** Keeps a body, in its own place if it has one. */
  function keep(body: KeptBody): void {
    kept = [body, ...kept.filter((one) => one !== body)].slice(0, keptBodies);
  }

  return (pieces) => {
    if (lengthOf(pieces) > limits.keptBodyBytes) return parseWhole(pieces);
    for (const earlier of kept) {
      const shared = earlier.sharedItems(pieces);
      // Two conversations may begin with the same messages.
      if (shared <= earlier.items.length / 2) continue;
      const parsed = parseRest({ earlier, shared, rest: bytesFrom(pieces, earlier.endOf(shared)), key });
      if (parsed === null) continue;
      keep(earlier);
      return parsed;
    }
    const bytes = bytesFrom(pieces, 0);
    const parsed = parseWhole([bytes]);
    const list = isRecord(parsed.value) ? parsed.value[key] : undefined;
    if (parsed.values > limits.bodyValues || !Array.isArray(list) || list.length === 0) return parsed;
    const range = findList(bytes, key);
    if (range?.ends.length === list.length) keep(createKeptBody(bytes, range, list));
    return parsed;
  };
}

/** Parses a body by itself. Throws a SyntaxError. */
export function parseWhole(pieces: Pieces): ParsedBody {
  const value: unknown = JSON.parse(bytesFrom(pieces, 0).toString('utf8'));
  return { value, values: countValues(value, limits.bodyValues) };
}

interface Rest {
  readonly earlier: KeptBody;
  /** The number of items that the body shares with the earlier one. */
  readonly shared: number;
  /** The bytes after these items. */
  readonly rest: Buffer;
  readonly key: string;
}

/** Parses what follows the shared items, and adds its items to the kept body. Null when only the whole can be parsed. */
function parseRest({ earlier, shared, rest, key }: Rest): ParsedBody | null {
  const value = parsedOrNull(`${earlier.head}"${placeholder}"${rest.toString('utf8')}`);
  const list = isRecord(value) ? value[key] : undefined;
  // Another value under the same key, later in the body, is the one that counts.
  if (!isRecord(value) || !Array.isArray(list) || list[0] !== placeholder) return null;
  const range = findList(rest, key, 'inside');
  if (range?.ends.length !== list.length) return null;
  const values = countValues(value, limits.bodyValues) - 1 + earlier.valuesOf(shared);
  earlier.replaceAfter(shared, rest, range.ends.slice(1), list.slice(1));
  return { value: { ...value, [key]: [...earlier.items] }, values };
}

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
