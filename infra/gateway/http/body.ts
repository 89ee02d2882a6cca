import type { IncomingMessage } from 'node:http';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { GatewayError } from '../gateway-error.ts';
import { limits } from '../limits.ts';
import { createGrowingJson, type ParsedBody, parseWhole } from './growing-json/index.ts';
import type { Pieces } from './growing-json/pieces.ts';

/** The bytes of all bodies that one owner is sending. */
interface BodyBudget {
  usedBytes: number;
}

/** The state of one owner: the budget of its bodies, and the parsers of those that list a conversation, by the list's key. */
interface OwnBodies {
  readonly budget: BodyBudget;
  readonly parsers: Map<string, JsonParser>;
}

type JsonParser = (pieces: Pieces) => ParsedBody;

/**
 * Creates a reader of bodies that list a conversation under `key`. The bodies of one owner share a budget, so that no agent
 * takes the memory of another. Throws as `readJsonBody` does.
 */
export function createBodyReader<Owner extends object>() {
  const owners = new WeakMap<Owner, OwnBodies>();
  return async (request: IncomingMessage, owner: Owner, key: string): Promise<unknown> => {
    const { budget, parsers } = owners.get(owner) ?? { budget: { usedBytes: 0 }, parsers: new Map() };
    owners.set(owner, { budget, parsers });
    const pieces = await readBody(request, budget);
    const parser = parsers.get(key) ?? createGrowingJson(key);
    parsers.set(key, parser);
    return parsed(pieces, parser);
  };
}

/**
 * Reads a JSON body of limited size and with a limited number of values, each of which costs far more memory and time than
 * its bytes. Throws a GatewayError: `too-large`, `malformed`, or `too-many-turns` when the budget is used up.
 */
export async function readJsonBody(request: IncomingMessage): Promise<unknown> {
  return parsed(await readBody(request, { usedBytes: 0 }), parseWhole);
}

function parsed(pieces: Pieces, parse: JsonParser): unknown {
  let body: ParsedBody;
  try {
    body = parse(pieces);
  } catch (error) {
    throw new GatewayError('malformed', `expected JSON: ${errorMessage(error).slice(0, 200)}`);
  }
  if (body.values <= limits.bodyValues) return body.value;
  throw new GatewayError('too-large', `expected a body of at most ${limits.bodyValues} JSON values, got more`);
}

/** Reads a body. A refused one is read to its end and discarded: many clients read no answer before they have sent everything. */
function readBody(request: IncomingMessage, budget: BodyBudget): Promise<Pieces> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let size = 0;
    let kept = 0;
    let refused: GatewayError | null = null;
    const discard = (): void => {
      chunks = [];
      budget.usedBytes -= kept;
      kept = 0;
    };
    const refuse = (error: GatewayError): void => {
      refused = error;
      discard();
    };
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limits.discardedBytes) request.destroy();
      if (refused !== null) return;
      chunks.push(chunk);
      kept += chunk.length;
      budget.usedBytes += chunk.length;
      if (size > limits.bodyBytes) {
        refuse(new GatewayError('too-large', `expected a body of at most ${limits.bodyBytes} bytes`));
      } else if (budget.usedBytes > limits.sessionBodyBytes) refuse(budgetUsedUp());
    });
    let hasEnded = false;
    request.once('end', () => {
      hasEnded = true;
      if (refused === null) resolve(chunks);
      else reject(refused);
      discard();
    });
    request.once('error', reject);
    request.once('close', () => {
      // Every request is closed in the end, and making an error that no caller receives costs time.
      if (hasEnded) return;
      discard();
      reject(new GatewayError('malformed', 'the connection was closed before the body had ended'));
    });
  });
}

const budgetUsedUp = (): GatewayError =>
  new GatewayError(
    'too-many-turns',
    `this session sends more than ${limits.sessionBodyBytes} bytes at once; wait for a reply`,
  );
