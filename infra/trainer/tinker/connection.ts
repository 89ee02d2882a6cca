import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { explanationOf, type HttpReply, HttpTimeout, HttpUnreachable, httpCall, jsonOf } from '../../http/client.ts';
import { isRecord } from '../../is-record.ts';
import { failedFuture, futureResponse, protobufType, tryAgain } from '../../kits/tinker-wire/index.ts';

export const trainerTimeouts = {
  /** Submission of a request; the server parses and stores large batches before it answers. */
  submitMs: 120_000,
  /** One long poll. Shorter than servers keep it open, so that a lost poll costs little. */
  pollMs: 45_000,
  /** A request from submission to result: the first of each length compiles, and others may be queued before it. */
  resultMs: 1_800_000,
  /** Pause between polls of a server that answers at once. */
  pollPauseMs: 250,
  /** Pause before a result is asked for again that was answered by a 500. */
  failurePauseMs: 1_000,
} as const;

/** The number of times that a request is submitted again after the server has lost its future. */
const resubmissions = 1;

/** The number of times that a result is asked for again after a 500: a server that could not answer recovers, a failure stays. */
const failurePolls = 3;

export interface Submission {
  readonly path: string;
  readonly json?: unknown;
  /** A protobuf body instead of JSON. */
  readonly bytes?: Uint8Array;
}

export interface TrainerConnection {
  readonly url: string;
  get(path: string, signal?: AbortSignal): Promise<HttpReply>;
  /** Gets what the server pointed to: with the key if it is the server's own, without if it is elsewhere. */
  follow(location: string, signal?: AbortSignal): Promise<HttpReply>;
  delete(path: string, signal?: AbortSignal): Promise<HttpReply>;
  /** Returns a reply of any status. */
  post(submission: Submission, signal?: AbortSignal): Promise<HttpReply>;
  /** Submits a request and waits for its result; throws typed failures. */
  result(submission: Submission, signal?: AbortSignal): Promise<HttpReply>;
  /** Waits for the result of an accepted request. */
  settled(requestId: string, submission: Submission, signal?: AbortSignal): Promise<HttpReply>;
}

export function createTrainerConnection(url: string, apiKey: string): TrainerConnection {
  const base = url.replace(/\/+$/, '');
  const headers = { 'x-api-key': apiKey };
  const call = async (
    method: 'GET' | 'POST' | 'DELETE',
    given: Submission,
    timeoutMs: number,
    signal?: AbortSignal,
  ) => {
    const { path, json, bytes } = given;
    const body = bytes === undefined ? { json } : { bytes };
    const type: Readonly<Record<string, string>> = bytes === undefined ? {} : { 'content-type': protobufType };
    const accept = { accept: `${protobufType}, application/json` };
    return httpCall(
      { method, url: base + path, headers: { ...headers, ...type, ...accept }, ...body, timeoutMs },
      signal,
    );
  };
  const post = (submission: Submission, signal?: AbortSignal) =>
    reached(call('POST', submission, trainerTimeouts.submitMs, signal));

  async function submit(submission: Submission, signal?: AbortSignal): Promise<string> {
    const reply = await post(submission, signal);
    if (reply.status !== 200) throw failureOf(reply, submission.path);
    return parseReply(futureResponse, reply, submission.path).request_id;
  }

  async function settled(first: string, submission: Submission, signal?: AbortSignal): Promise<HttpReply> {
    const deadline = performance.now() + trainerTimeouts.resultMs;
    let requestId = first;
    let left = resubmissions;
    let failures = 0;
    while (performance.now() < deadline) {
      const polled = { path: '/api/v1/retrieve_future', json: { request_id: requestId } };
      const reply = await orTimeout(call('POST', polled, trainerTimeouts.pollMs, signal));
      if (reply === 'timeout') continue;
      const isFutureLost = reply.status === 410 || reply.status === 404;
      if (isFutureLost && left > 0) {
        left -= 1;
        requestId = await submit(submission, signal);
      } else if (isPending(reply)) {
        failures = 0;
        await sleep(trainerTimeouts.pollPauseMs, undefined, signal === undefined ? {} : { signal });
      } else if (reply.status === 500 && failures < failurePolls) {
        failures += 1;
        await sleep(trainerTimeouts.failurePauseMs, undefined, signal === undefined ? {} : { signal });
      } else {
        return finished(reply, submission.path);
      }
    }
    throw unavailable(`${submission.path}: expected a result within ${trainerTimeouts.resultMs} ms, got none`);
  }

  function follow(location: string, signal?: AbortSignal): Promise<HttpReply> {
    const { href, origin } = new URL(location, base);
    const key = origin === new URL(base).origin ? { headers } : {};
    return reached(httpCall({ method: 'GET', url: href, ...key, timeoutMs: trainerTimeouts.resultMs }, signal));
  }

  return {
    url: base,
    follow,
    get: (path, signal) => reached(call('GET', { path }, trainerTimeouts.submitMs, signal)),
    delete: (path, signal) => reached(call('DELETE', { path }, trainerTimeouts.submitMs, signal)),
    post,
    settled,
    result: async (submission, signal) => settled(await submit(submission, signal), submission, signal),
  };
}

/** Parses the body of a 200; throws TrainerRefused when it cannot be read. */
export function parseReply<T>(schema: z.ZodType<T>, reply: HttpReply, what: string): T {
  const parsed = schema.safeParse(jsonOf(reply));
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`).join('; ');
  throw refused(`${what}: unreadable reply ${explanationOf(reply)}: ${issues}`);
}

/** Turns a status other than 200 into a failure. */
export function failureOf(reply: HttpReply, what: string): TemperFailure {
  const message = `trainer ${what}: expected 200, got ${reply.status}: ${explanationOf(reply)}`;
  return lostModel(reply, message) ?? (isTransient(reply) ? unavailable(message) : refused(message));
}

/** The failure of a request that the server accepted. It keeps the failure as the request's result, so that the same request fails again. */
function settledFailure(reply: HttpReply, what: string): TemperFailure {
  const message = `trainer ${what} failed: ${explanationOf(reply)}`;
  return lostModel(reply, message) ?? refused(message);
}

function lostModel(reply: HttpReply, message: string): TemperFailure | null {
  if (!/model.*(not loaded|not found)/i.test(explanationOf(reply))) return null;
  return new TemperFailure('TrainerLostModel', `${message}; create a model and load the last checkpoint`);
}

/** Whether the same request may succeed later. */
export const isTransient = ({ status }: Pick<HttpReply, 'status'>): boolean =>
  status >= 500 || [408, 410, 425, 429].includes(status);

export function refused(message: string, options?: ErrorOptions): TemperFailure {
  return new TemperFailure('TrainerRefused', message, options);
}

export function unavailable(message: string, options?: ErrorOptions): TemperFailure {
  return new TemperFailure('TrainerUnavailable', message, options);
}

function isPending(reply: HttpReply): boolean {
  if (reply.status === 408) return true;
  return reply.status === 200 && !isProtobuf(reply) && tryAgain.safeParse(jsonOf(reply)).success;
}

export function isProtobuf(reply: HttpReply): boolean {
  return reply.contentType.startsWith(protobufType);
}

/** Returns the result of a request, or throws why there is none. */
function finished(reply: HttpReply, what: string): HttpReply {
  // A proxy that does not reach its server answers with other statuses than 500.
  if (reply.status === 500 || reply.status === 400) throw settledFailure(reply, what);
  if (reply.status !== 200) throw failureOf(reply, what);
  if (isProtobuf(reply)) return reply;
  const body = jsonOf(reply);
  // Some servers answer a failed request with a 200.
  if (isRecord(body) && failedFuture.safeParse(body).success) throw settledFailure(reply, what);
  return reply;
}

async function reached<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof HttpUnreachable) throw unavailable(`trainer: ${error.message}`, { cause: error });
    throw error;
  }
}

async function orTimeout(call: Promise<HttpReply>): Promise<HttpReply | 'timeout'> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof HttpTimeout) return 'timeout';
    return reached(Promise.reject(error));
  }
}
