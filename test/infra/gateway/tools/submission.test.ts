import assert from 'node:assert/strict';
import { it } from 'node:test';
import { socketOf } from '../../../../infra/gateway/sockets.ts';
import type { HostTool } from '../../../../infra/gateway/tools/host-tool.ts';
import { createToolbox } from '../../../../infra/gateway/tools/toolbox.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../../helpers/gateway/gateway.ts';
import { connectMcp } from '../../../helpers/gateway/mcp-client.ts';

it('host tools record nothing once the work is handed in, but a first answer that arrives behind the submission', async () => {
  let runs = 0;
  const count: HostTool = {
    name: 'count',
    description: 'Counts.',
    input: {},
    call() {
      runs += 1;
      return String(runs);
    },
  };
  const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [65, 66] }) });
  await using gateway = await startTestGateway(engine, { toolbox: createToolbox([count]) });
  const resultOf = async (session: string, calls: readonly (readonly [string, Record<string, unknown>?])[]) => {
    const secret = await gateway.open(session, { hostTools: ['submit', 'answer', 'count'] });
    await using agent = await connectMcp(socketOf(gateway.options.sockets.agents, gateway.options.name), secret);
    const said: string[] = [];
    for (const [name, args] of calls) said.push(await agent.call(name, args));
    const { answer, submitted } = await gateway.control.seal(session);
    return { answer: String(await gateway.store.get(answer?.digest ?? '')), submitted, said };
  };
  const refused = 'error: the work is handed in; stop';
  const [first, late] = [{ answer: '42' }, { answer: '43' }];
  assert.deepEqual(
    await resultOf('before.1', [['answer', first], ['submit'], ['answer', late], ['count'], ['submit']]),
    {
      answer: '42',
      submitted: true,
      said: ['The answer is recorded.', 'Your work is handed in.', refused, refused, 'Your work is handed in.'],
    },
  );
  assert.deepEqual(await resultOf('behind.1', [['submit'], ['answer', first], ['answer', late]]), {
    answer: '42',
    submitted: true,
    said: ['Your work is handed in.', 'The answer is recorded.', refused],
  });
  assert.equal(runs, 0);
});
