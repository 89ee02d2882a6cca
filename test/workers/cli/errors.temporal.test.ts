import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type ClientConnection, connectClient, plainTarget } from '../../../infra/temporal/connection.ts';
import { startRun } from '../../../workers/cli/follow/start-workflow.ts';
import { describeError } from '../../../workers/cli/text/errors.ts';
import { createNamespace } from '../../helpers/temporal/production/namespace.ts';
import { startTestServer, type TestServer } from '../../helpers/temporal/temporal.ts';

const remedy =
  /\n {2}the Temporal namespace lacks temper's search attributes, .*; run `temper doctor --register` once$/;

describe('an error for a user', () => {
  let server: TestServer | undefined;
  let bare: ClientConnection | undefined;
  before(async () => {
    server = await startTestServer();
    const target = plainTarget(server.address, `bare-${randomUUID()}`);
    await createNamespace(target);
    bare = await connectClient(target);
  });
  after(async () => {
    await bare?.close();
    await server?.close();
  });

  it('of a namespace without search attributes says how to register them', async () => {
    const { client } = bare ?? assert.fail();
    const message = (work: Promise<unknown>) =>
      work.then(
        () => assert.fail('expected a refusal'),
        (error: unknown) => describeError(error, false),
      );
    assert.match(await message(client.workflow.count('TemperOutcome="scored"')), remedy);
    assert.match(await message(startRun(client, 'some-run', { tasks: 'generated:train/1' })), remedy);
    assert.doesNotMatch(await message(client.workflow.count('not a query')), remedy);
  });
});
