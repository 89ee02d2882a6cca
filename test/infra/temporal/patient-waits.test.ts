import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { Client, credentials, Server, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js';
import { patientWaits } from '../../../infra/temporal/patient-waits.ts';

const asItIs = (bytes: Buffer): Buffer => bytes;
const pathOf = (method: string): string => `/temporal.api.workflowservice.v1.WorkflowService/${method}`;

describe('a server that runs out of time once', () => {
  let server: Server;
  afterEach(() => server?.forceShutdown());

  /** Calls a method and returns the status code and how often the server was called. */
  async function call(method: string, deadline?: number) {
    let calls = 0;
    server = new Server();
    const definition = {
      path: pathOf(method),
      requestStream: false,
      responseStream: false,
      requestSerialize: asItIs,
      requestDeserialize: asItIs,
      responseSerialize: asItIs,
      responseDeserialize: asItIs,
    } as const;
    const answer = (_: unknown, reply: (error: Partial<ServiceError> | null, body?: Buffer) => void): void => {
      calls += 1;
      if (calls > 1) reply(null, Buffer.alloc(0));
      else reply({ code: status.DEADLINE_EXCEEDED, details: 'context deadline exceeded' });
    };
    server.addService({ answer: definition }, { answer });
    const port = await new Promise<number>((resolve, reject) => {
      const insecure = ServerCredentials.createInsecure();
      server.bindAsync('127.0.0.1:0', insecure, (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
    const options = { interceptors: [patientWaits], ...(deadline === undefined ? {} : { deadline }) };
    const error = await new Promise<ServiceError | null>((resolve) => {
      client.makeUnaryRequest(pathOf(method), asItIs, asItIs, Buffer.alloc(0), options, resolve);
    });
    client.close();
    return [error?.code ?? status.OK, calls];
  }

  it('is asked again for the end of a workflow', async () => {
    assert.deepEqual(await call('GetWorkflowExecutionHistory'), [status.OK, 2]);
  });

  it('is asked once if the caller limits the wait, and for anything else', async () => {
    const soon = Date.now() + 60_000;
    assert.deepEqual(await call('GetWorkflowExecutionHistory', soon), [status.DEADLINE_EXCEEDED, 1]);
    server.forceShutdown();
    assert.deepEqual(await call('QueryWorkflow'), [status.DEADLINE_EXCEEDED, 1]);
  });
});
