import { z } from 'zod';
import type { HostCall } from '../../../workflows/contracts/host-tools.ts';
import { GatewayError } from '../gateway-error.ts';
import { limits } from '../limits.ts';
import type { HostTool } from '../tools/host-tool.ts';
import { isEnvironmentLost, runTool, type SessionTools } from '../tools/run-tool.ts';
import { beginTiming } from '../turns/timing.ts';
import type { HostCallRecord, Journal } from './journal.ts';

/** A request to call a tool. */
export interface HostCallRequest {
  readonly key: string;
  readonly tool: string;
  /** The arguments as the client sent them. */
  readonly args: unknown;
}

/** The calls of a session's host tools. A call without a journal record never happened. */
export interface HostCalls {
  readonly tools: readonly HostTool[];
  readonly records: readonly HostCall[];
  /** Whether the agent has handed in its work. */
  readonly submitted: boolean;
  /** The last answer that the agent has recorded; null without one. */
  readonly answer: string | null;
  readonly running: boolean;
  /** Throws a GatewayError once the work is handed in. */
  requireUnsubmitted(): void;
  /** Adds a call that was read from the journal. */
  restore(record: HostCallRecord): void;
  /**
   * Calls a tool, one at a time. The same request is the same call: a running one is joined, a recorded one is answered from the
   * journal. Rejects with a GatewayError if the work is handed in or the call could not be recorded, and then it has not happened.
   */
  call(request: HostCallRequest): Promise<HostCall>;
  /** Cancels running calls and waits for them. No call may follow. */
  cancel(reason: GatewayError): Promise<void>;
}

export interface HostCallsDeps extends SessionTools {
  readonly journal: Journal;
  /** Returns the number of turns so far. */
  readonly turns: () => number;
  /** Resolves when the session may act. */
  readonly admit: () => Promise<void>;
  /** Records that the environment behind a tool was lost, which is not the agent's own doing. */
  readonly onEnvironmentLost: (key: string) => Promise<void>;
}

export function createHostCalls(deps: HostCallsDeps): HostCalls {
  return new RecordedCalls(deps);
}

class RecordedCalls implements HostCalls {
  readonly tools: readonly HostTool[];
  readonly records: HostCall[] = [];
  readonly #deps: HostCallsDeps;
  readonly #byKey = new Map<string, HostCall>();
  readonly #running = new Map<string, Promise<HostCall>>();
  readonly #stop = new AbortController();
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: HostCallsDeps) {
    this.#deps = deps;
    this.tools = deps.tools;
  }

  get submitted(): boolean {
    return this.records.some(({ tool, failed }) => tool === 'submit' && failed !== true);
  }

  get answer(): string | null {
    const found = this.records.findLast(({ tool, answer, failed }) => {
      return failed !== true && (tool === 'answer' || answer !== undefined);
    });
    return found === undefined ? null : (found.answer ?? answerIn(found.arguments));
  }

  get running(): boolean {
    return this.#running.size > 0;
  }

  requireUnsubmitted(): void {
    if (this.submitted) throw new GatewayError('submitted', 'the work is handed in; stop');
  }

  restore(record: HostCallRecord): void {
    this.#add(record);
  }

  call(request: HostCallRequest): Promise<HostCall> {
    const known = this.#byKey.get(request.key);
    return known === undefined ? (this.#running.get(request.key) ?? this.#start(request)) : Promise.resolve(known);
  }

  async cancel(reason: GatewayError): Promise<void> {
    this.#stop.abort(reason);
    await Promise.allSettled(this.#running.values());
  }

  #start(request: HostCallRequest): Promise<HostCall> {
    const call = this.#last.then(() => this.#perform(request));
    this.#last = call.catch(() => {});
    this.#running.set(request.key, call);
    const leave = (): void => void this.#running.delete(request.key);
    call.then(leave, leave);
    return call;
  }

  async #perform({ key, tool, args }: HostCallRequest): Promise<HostCall> {
    const { journal, turns, admit } = this.#deps;
    const { signal } = this.#stop;
    const { startedAt, endedAt } = beginTiming();
    await admit();
    this.#requireOpen(tool);
    if (this.records.length >= limits.hostCalls) {
      throw new GatewayError('too-many-turns', `the limit of ${limits.hostCalls} calls is reached; continue without`);
    }
    const said = await runTool(this.#deps, { name: tool, given: args, calls: this.records }, signal).catch(
      async (error: unknown) => {
        if (isEnvironmentLost(error)) await this.#deps.onEnvironmentLost(key);
        throw error;
      },
    );
    signal.throwIfAborted();
    await admit();
    const index = this.records.length;
    const record = { index, key, tool, turns: turns(), startedAt, endedAt: endedAt(), ...said };
    await journal.append({ kind: 'host-call', call: record });
    const call = this.#add(record);
    // The host may have been lost while it wrote: then the call may be missing in the journal that another one has adopted.
    await admit();
    return call;
  }

  /**
   * Throws once the work is handed in, since nothing counts then. The calls of one reply may arrive in any order, so a first
   * answer is still taken, and the same submission may come twice.
   */
  #requireOpen(tool: string): void {
    if (tool === 'submit' || (tool === 'answer' && this.answer === null)) return;
    this.requireUnsubmitted();
  }

  #add({ key, ...call }: HostCallRecord): HostCall {
    this.records.push(call);
    this.#byKey.set(key, call);
    return call;
  }
}

const answerArguments = z.object({ answer: z.string() });
const answerIn = (args: string): string => answerArguments.parse(JSON.parse(args)).answer;
