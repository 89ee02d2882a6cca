import { createHash, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { mostUnread, requestHeader, unreadHeader } from '../../agents/relay/protocol.ts';
import { clientKeyPrefix, type RequestOrigin } from '../sessions/samples.ts';

/** The header by which the SDKs of OpenAI and Anthropic count the retries of a request; 0 for the first time. */
const retryCountHeader = 'x-stainless-retry-count';
const idempotencyHeader = 'idempotency-key';

/** Reads from the headers of a request what tells a retry from a request for a further sample. */
export function originOf(headers: IncomingHttpHeaders): RequestOrigin {
  const relayed = namesIn(headers[requestHeader])[0];
  const key = headers[idempotencyHeader];
  const hasKey = typeof key === 'string' && key !== '';
  const digest = hasKey ? createHash('sha256').update(key).digest('hex').slice(0, 32) : '';
  return {
    id: relayed ?? randomUUID(),
    names: [...(relayed === undefined ? [] : [relayed]), ...(hasKey ? [`${clientKeyPrefix}${digest}`] : [])],
    isRetry: Number(headers[retryCountHeader]) > 0,
    unread: namesIn(headers[unreadHeader]).slice(0, mostUnread),
  };
}

/** Returns the well-formed names in a header, since a relay is in a sandbox. */
const namesIn = (header: string | string[] | undefined): string[] =>
  String(header ?? '')
    .split(',')
    .filter((name) => /^[\w-]{1,64}$/.test(name));
