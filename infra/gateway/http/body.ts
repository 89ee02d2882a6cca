import type { IncomingMessage } from 'node:http';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { GatewayError } from '../gateway-error.ts';
import { limits } from '../limits.ts';

/** The bytes of all bodies that one owner is sending. */
interface BodyBudget {
  usedBytes: number;
}

/** Creates a reader of bodies. The bodies of one owner share a budget, so that no agent takes the memory of another. */
export function createBodyReader<Owner extends object>() {
  const budgets = new WeakMap<Owner, BodyBudget>();
  return (request: IncomingMessage, owner: Owner): Promise<unknown> => {
    const budget = budgets.get(owner) ?? { usedBytes: 0 };
    budgets.set(owner, budget);
    return readJsonBody(request, budget);
  };
}

/**
 * Reads a JSON body of limited size and with a limited number of values, each of which costs far more memory and time than
 * its bytes. Throws a GatewayError: `too-large`, `malformed`, or `too-many-turns` when the budget is used up.
 */
export async function readJsonBody(request: IncomingMessage, budget: BodyBudget = { usedBytes: 0 }): Promise<unknown> {
  const value = parsed(await readBody(request, budget));
  if (hasAtMost(value, limits.bodyValues)) return value;
  throw new GatewayError('too-large', `expected a body of at most ${limits.bodyValues} JSON values, got more`);
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new GatewayError('malformed', `expected JSON: ${errorMessage(error).slice(0, 200)}`);
  }
}

/** Reads a body. A refused one is read to its end and discarded: many clients read no answer before they have sent everything. */
function readBody(request: IncomingMessage, budget: BodyBudget): Promise<Buffer> {
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
      if (refused === null) resolve(Buffer.concat(chunks));
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

/** Whether a JSON value consists of at most `most` values. Walks without recursion, and stops at the first one too many. */
export function hasAtMost(value: unknown, most: number): boolean {
  const left: object[] = isNested(value) ? [value] : [];
  let seen = 1;
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    const members: readonly unknown[] = Array.isArray(item) ? item : Object.values(item);
    seen += members.length;
    if (seen > most) return false;
    for (const member of members) if (isNested(member)) left.push(member);
  }
  return true;
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null;
