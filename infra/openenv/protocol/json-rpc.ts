import type { ClientSession } from '../episodes/client-session.ts';
import type { OfferedTool } from '../episodes/model-call.ts';
import { jsonRpcRequest, OpenEnvError } from './messages.ts';

const codes = { invalidRequest: -32600, unknownMethod: -32601, invalidParams: -32602, serverError: -32000 } as const;

/** The tools and the client's session that the methods act on; the session is null for a plain HTTP request. */
export interface RpcTarget {
  readonly tools: readonly OfferedTool[];
  readonly session: ClientSession | null;
}

/** Answers an MCP request as OpenEnv frames it: `tools/list`, and within a client's session `tools/call`. */
export async function answerRpc(body: unknown, { tools, session }: RpcTarget): Promise<object> {
  const parsed = jsonRpcRequest.safeParse(body);
  if (!parsed.success) return failure(null, codes.invalidRequest, 'expected a JSON-RPC 2.0 request with a method');
  const { id = null, method, params } = parsed.data;
  if (method === 'tools/list') {
    return success(id, {
      tools: tools.map(({ name, description, schema }) => ({ name, description, inputSchema: schema })),
    });
  }
  if (method !== 'tools/call')
    return failure(id, codes.unknownMethod, `expected tools/list or tools/call, got ${method.slice(0, 100)}`);
  if (session === null) {
    return failure(id, codes.serverError, 'tools/call needs an episode; call it on the WebSocket /ws, after a reset');
  }
  const { name, arguments: given = {} } = params;
  if (typeof name !== 'string' || typeof given !== 'object' || given === null || Array.isArray(given)) {
    return failure(id, codes.invalidParams, 'expected name, a text, and arguments, an object');
  }
  try {
    const { observation } = await session.step({ type: 'call_tool', tool_name: name, arguments: { ...given } });
    const { error = null, result = '' } = observation;
    if (error !== null) return failure(id, codes.invalidParams, error.message);
    // No reward: an agent that has the tools alone must not learn it.
    return success(id, { content: [{ type: 'text', text: result }], data: result, isError: false });
  } catch (error) {
    if (error instanceof OpenEnvError) return failure(id, codes.serverError, error.message);
    throw error;
  }
}

type Id = string | number | null;
const success = (id: Id, result: object) => ({ jsonrpc: '2.0', id, result });
const failure = (id: Id, code: number, message: string) => ({ jsonrpc: '2.0', id, error: { code, message } });
