import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { ContextOverflow } from '../../../../infra/gateway/gateway-error.ts';
import { askUpstream } from '../../../../infra/gateway/upstream/ask.ts';
import type { UpstreamModel } from '../../../../infra/gateway/upstream/upstreams.ts';
import type { Conversation } from '../../../../infra/kits/chat-tokens/index.ts';
import { type Answer, startScriptedServer } from '../../../helpers/engine/scripted-server.ts';

const key = '0123456789abcdef0123456789abcdef';
const sampling = { temperature: 1, topP: 1, topK: -1, maxTokensPerTurn: 500 };
const conversation: Conversation = {
  messages: [
    { role: 'system', text: 'Be brief.' },
    { role: 'user', text: 'Fix it.' },
    {
      role: 'assistant',
      text: '',
      reasoning: 'hm',
      toolCalls: [{ id: 'call-1', name: 'bash', arguments: '{"command":"ls"}' }],
    },
    { role: 'tool', callId: 'call-1', name: null, text: 'a.js' },
  ],
  tools: [{ name: 'bash', description: 'Runs.', parameters: { type: 'object' } }],
};
const said = (message: object, more: object = {}): Answer => ({
  status: 200,
  json: {
    model: 'large-2026-11-01',
    choices: [{ message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 40, completion_tokens: 7, total_tokens: 47 },
    ...more,
  },
});

const upstreamAt = (url: string): UpstreamModel => ({
  name: 'large',
  url,
  model: 'large',
  apiKey: 'sk-secret',
  maxTokensField: 'max_tokens',
  returnsReasoning: false,
  readsImages: false,
  namesSession: false,
});

async function withServer<Result>(
  answers: readonly Answer[],
  work: (
    upstream: UpstreamModel,
    seen: readonly { body: unknown; authorization: string | undefined }[],
  ) => Promise<Result>,
): Promise<Result> {
  let next = 0;
  const answer = (): Answer => answers[next++] ?? { status: 500, json: { error: { message: 'no more answers' } } };
  const server = await startScriptedServer({ 'POST /v1/chat/completions': answer });
  try {
    return await work(upstreamAt(`${server.url}/v1/`), server.seen);
  } finally {
    await server.close();
  }
}

const ask = (upstream: UpstreamModel, changes: { sampling?: typeof sampling; graceMs?: number } = {}) =>
  askUpstream(
    {
      upstream,
      call: { conversation, maxTokens: 300, sampling: changes.sampling ?? sampling },
      session: 'session.1',
      key,
      graceMs: changes.graceMs ?? 60_000,
      onUnavailable: () => {},
    },
    new AbortController().signal,
  );

describe('an upstream model', () => {
  it('receives the conversation, the token limit and its key, and no parameter at its default', async () => {
    await withServer([said({ content: 'Done.' })], async (upstream, seen) => {
      await ask(upstream);
      assert.equal(seen[0]?.authorization, 'Bearer sk-secret');
      assert.deepEqual(seen[0]?.body, {
        model: 'large',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Fix it.' },
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'call-1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } }],
          },
          { role: 'tool', tool_call_id: 'call-1', content: 'a.js' },
        ],
        tools: [{ type: 'function', function: { name: 'bash', description: 'Runs.', parameters: { type: 'object' } } }],
        max_tokens: 300,
      });
    });
  });

  it('receives the fields that its configuration and the sampling parameters require', async () => {
    await withServer([said({ content: 'Done.' })], async (upstream, seen) => {
      const asked = { ...upstream, maxTokensField: 'max_completion_tokens', returnsReasoning: true } as const;
      await ask(asked, { sampling: { ...sampling, temperature: 0.5, topP: 0.9, topK: 20 } });
      const [{ body } = assert.fail()] = seen;
      const { messages, ...rest } = body as { messages: { reasoning_content?: string }[] };
      assert.equal(messages[2]?.reasoning_content, 'hm');
      const { max_completion_tokens, temperature, top_p, top_k } = rest as Record<string, unknown>;
      assert.deepEqual([max_completion_tokens, temperature, top_p, top_k], [300, 0.5, 0.9, 20]);
      assert.equal('max_tokens' in rest, false);
    });
  });

  it('receives the session and the turn in headers, if its configuration says so', async () => {
    const headersOf = async (namesSession: boolean) => {
      const seen: IncomingHttpHeaders[] = [];
      const server = createServer((request, response) => {
        seen.push(request.headers);
        const message = { role: 'assistant', content: 'Done.' };
        const usage = { prompt_tokens: 1, completion_tokens: 1 };
        request.resume().once('end', () => response.end(JSON.stringify({ choices: [{ message }], usage })));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as AddressInfo;
      try {
        await ask({ ...upstreamAt(`http://127.0.0.1:${port}/v1`), namesSession });
      } finally {
        server.close();
        server.closeAllConnections();
      }
      const [{ 'x-temper-session': session, 'idempotency-key': turn } = assert.fail()] = seen;
      return [session, turn];
    };
    assert.deepEqual(await headersOf(true), ['session.1', key]);
    assert.deepEqual(await headersOf(false), [undefined, undefined]);
  });

  it('returns texts, calls, its own name and its token counts', async () => {
    const calls = [
      { id: 'c1', function: { name: 'bash', arguments: '{"command":"ls"}' } },
      { function: { name: 'submit', arguments: '' } },
    ];
    const answer = said({ content: 'I look.', reasoning_content: 'hm', tool_calls: calls });
    const reply = await withServer([answer], (upstream) => ask(upstream));
    assert.deepEqual(reply, {
      reply: {
        role: 'assistant',
        text: 'I look.',
        reasoning: 'hm',
        toolCalls: [
          { id: 'c1', name: 'bash', arguments: '{"command":"ls"}' },
          { id: 'call_0123456789abcdef1', name: 'submit', arguments: '{}' },
        ],
      },
      finishReason: 'stop',
      model: 'large-2026-11-01',
      promptTokens: 40,
      sampledTokens: 7,
    });
    const cut = { choices: [{ message: { content: 'I' }, finish_reason: 'length' }] };
    assert.equal((await withServer([said({}, cut)], (upstream) => ask(upstream))).finishReason, 'length');
  });

  it('is retried within the grace period when it is busy or fails', async () => {
    const busy: Answer = { status: 429, json: { error: { message: 'slow down, sk-secret' } } };
    await withServer([busy, { status: 502, json: {} }, said({ content: 'Done.' })], async (upstream, seen) => {
      assert.equal((await ask(upstream)).reply.text, 'Done.');
      assert.equal(seen.length, 3);
    });
    await withServer([busy], async (upstream) => {
      await assert.rejects(ask(upstream, { graceMs: 0 }), (error: Error & { type: string }) => {
        assert.equal(error.type, 'EngineUnavailable');
        assert.match(error.message, /upstream large: .* 1 attempts, the last one: 429: slow down, …/);
        return true;
      });
    });
    const nowhere = { ...({} as UpstreamModel), name: 'gone', url: 'http://127.0.0.1:1/v1', apiKey: null };
    await assert.rejects(
      ask({ ...nowhere, model: 'm', maxTokensField: 'max_tokens', returnsReasoning: false }, { graceMs: 0 }),
      {
        type: 'EngineUnavailable',
      },
    );
  });

  it('is not retried when it rejects the request or returns an invalid reply', async () => {
    const cases: readonly (readonly [Answer, RegExp])[] = [
      [
        { status: 401, json: { error: { message: 'wrong key sk-secret' } } },
        /got 401: wrong key …; check its url, model and key/,
      ],
      [{ status: 404, json: { error: { message: 'no model large' } } }, /got 404: no model large/],
      [{ status: 400, json: { error: { message: 'tools.0: bad schema' } } }, /got 400: tools\.0/],
      [{ status: 200, json: { choices: [] } }, /choices/],
      [said({ content: 'x' }, { usage: undefined }), /expected a chat completion with its usage: usage/],
      [{ status: 200, bytes: Buffer.from('<html>'), type: 'text/html' }, /expected a chat completion/],
    ];
    for (const [answer, message] of cases) {
      await withServer([answer], async (upstream, seen) => {
        await assert.rejects(ask(upstream), { type: 'EngineInvalid', message });
        assert.equal(seen.length, 1);
      });
    }
  });

  it('reports a context overflow with its numbers', async () => {
    const openai = {
      code: 'context_length_exceeded',
      message: "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.",
    };
    const other = { message: 'prompt is too long' };
    const overflow = async (error: object) =>
      withServer([{ status: 400, json: { error } }], async (upstream) => {
        const failed = await ask({ ...upstream, contextLength: 8192 }).then(
          () => null,
          (thrown: unknown) => thrown,
        );
        assert.ok(failed instanceof ContextOverflow, String(failed));
        return [failed.contextLength, failed.promptTokens];
      });
    assert.deepEqual(await overflow(openai), [4096, 5000]);
    assert.deepEqual(await overflow(other), [8192, 8193]);
  });
});
