import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/**
 * SGLang's HTTP server as far as temper uses it: routes, fields and their order follow its source (io_struct.py,
 * tokenizer_manager.py and http_server.py of 2026-08). Its tokens come from a script.
 */
export interface SglangServer {
  readonly url: string;
  /** Every request in order, as `METHOD /path` with its body. */
  readonly seen: readonly Seen[];
  readonly running: number;
  weightVersion: string;
  close(): Promise<void>;
}

export interface Seen {
  readonly route: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read requests as servers do
  readonly body: any;
}

export interface SglangScript {
  /** Returns the tokens of a request; with `hang`, the request then waits until it is aborted. */
  readonly say: (body: Seen['body'], index: number) => { readonly ids: readonly number[]; readonly hang?: boolean };
  /** Whether the server runs with `--incremental-streaming-output`. */
  readonly incremental?: boolean;
  /** Whether replies have version spans, which servers before 2026-08 lack. */
  readonly spans?: boolean;
  readonly perChunk?: number;
  /** Returns the result of the next weight update; success by default. */
  readonly update?: () => { readonly success: boolean; readonly message: string };
  /** Returns a reply that replaces the server's own, if any. */
  readonly instead?: (seen: Seen) => { readonly status: number; readonly json: unknown } | undefined;
}

interface Running {
  readonly rid: string;
  finish(reason: object): void;
}

export async function startSglangServer(script: SglangScript): Promise<SglangServer> {
  const { say, incremental = false, spans = true, perChunk = 1 } = script;
  const seen: Seen[] = [];
  const running = new Map<string, Running>();
  const adapters = new Map<string, string>();
  const state = {
    weightVersion: 'default',
    modelPath: '/models/base',
    paused: null as PromiseWithResolvers<void> | null,
  };
  const abort = (matching: (rid: string) => boolean): void => {
    for (const one of running.values()) if (matching(one.rid)) one.finish({ type: 'abort', message: 'Aborted' });
  };

  async function generate(body: Seen['body'], index: number, response: ServerResponse): Promise<void> {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    await state.paused?.promise;
    if (body.lora_path !== undefined && !adapters.has(body.lora_path)) {
      response.write(
        `data: {"error":{"message":"Got LoRA adapter that has never been loaded: ${body.lora_path}"}}\n\n`,
      );
      response.end('data: [DONE]\n\n');
      return;
    }
    const { ids, hang = false } = say(body, index);
    const logprobs = ids.map((id, at) => [-(at + 1) / 1000, id, null]);
    const version = state.weightVersion;
    const chunk = (from: number, to: number, finish: object | null): void => {
      const meta_info = {
        id: body.rid,
        finish_reason: finish,
        prompt_tokens: body.input_ids.length,
        weight_version: version,
        num_retractions: 0,
        input_token_logprobs: [],
        output_token_logprobs: logprobs.slice(from, to),
        output_token_logprobs_length: to,
        reasoning_tokens: 0,
        completion_tokens: to,
        cached_tokens: 0,
        ...(spans ? { weight_versions: [{ version, start: 0, end: to }] } : {}),
      };
      response.write(`data: ${JSON.stringify({ text: '', output_ids: ids.slice(from, to), meta_info })}\n\n`);
    };
    const finish = (reason: object): void => {
      running.delete(body.rid);
      // An aborted request repeats all tokens, even where chunks are increments.
      chunk(0, ids.length, reason);
      response.end('data: [DONE]\n\n');
    };
    running.set(body.rid, { rid: body.rid, finish });
    response.once('close', () => running.delete(body.rid));
    const end = hang ? ids.length : Math.max(0, ids.length - perChunk);
    for (let at = 0; at < end; at += perChunk) chunk(incremental ? at : 0, Math.min(at + perChunk, end), null);
    if (hang) return;
    running.delete(body.rid);
    chunk(incremental ? end : 0, ids.length, { type: 'stop', matched: ids.at(-1) });
    response.end('data: [DONE]\n\n');
  }

  const routes: Readonly<Record<string, (body: Seen['body']) => object | null>> = {
    'GET /model_info': () => ({
      model_path: state.modelPath,
      is_generation: true,
      weight_version: state.weightVersion,
    }),
    'GET /v1/models': () => ({
      object: 'list',
      data: [
        { id: state.modelPath, root: state.modelPath, parent: null, max_model_len: 4096 },
        ...[...adapters].map(([id, root]) => ({ id, root, parent: state.modelPath, max_model_len: null })),
      ],
    }),
    'GET /server_info': () => ({
      max_req_input_len: 4090,
      internal_states: [{ memory_usage: { token_capacity: 20_480 }, effective_max_running_requests_per_dp: 128 }],
    }),
    'POST /abort_request': (body) => {
      abort((rid) => body.abort_all || rid.startsWith(body.rid));
      return {};
    },
    'POST /pause_generation': (body) => {
      state.paused ??= Promise.withResolvers();
      if (body.mode === 'abort') abort(() => true);
      return { message: 'Generation paused successfully.', status: 'ok' };
    },
    'POST /continue_generation': () => {
      state.paused?.resolve();
      state.paused = null;
      return { message: 'Generation continued successfully.', status: 'ok' };
    },
    'POST /update_weights_from_disk': (body) => {
      const { success, message } = script.update?.() ?? {
        success: true,
        message: 'Succeeded to update model weights.',
      };
      if (success) Object.assign(state, { modelPath: body.model_path, weightVersion: body.weight_version });
      return { success, message, num_paused_requests: 0 };
    },
    'POST /load_lora_adapter': (body) => {
      if (adapters.has(body.lora_name)) {
        return { success: false, error_message: `LoRA adapter ${body.lora_name} is already loaded.` };
      }
      adapters.set(body.lora_name, body.lora_path);
      return { success: true, error_message: null };
    },
    'POST /unload_lora_adapter': (body) => ({ success: adapters.delete(body.lora_name) }),
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = `${request.method} ${request.url}`;
    const body = request.method === 'POST' ? await json(request) : undefined;
    const asked = seen.filter((one) => one.route === 'POST /generate').length;
    seen.push({ route, body });
    const instead = script.instead?.({ route, body });
    if (instead === undefined && route === 'POST /generate') return generate(body, asked, response);
    const said = instead === undefined ? (routes[route]?.(body) ?? null) : null;
    const failed = said !== null && 'success' in said && said.success === false;
    const { status, json: reply } = instead ?? {
      status: said === null ? 404 : failed ? 400 : 200,
      json: said ?? { detail: 'Not Found' },
    };
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(reply));
  }

  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    get running() {
      return running.size;
    },
    get weightVersion() {
      return state.weightVersion;
    },
    set weightVersion(label) {
      state.weightVersion = label;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
