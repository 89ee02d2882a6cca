import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TestGateway } from '../../helpers/gateway/gateway.ts';
import { agentCases } from '../../helpers/rollouts/agent-cases.ts';
import { type AgentRollouts, startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';
import { writeHarborTask } from '../../helpers/tasks/harbor-task.ts';

/** An MCP server with one tool, over stdin and stdout, or over HTTP at a port. */
const server = `import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
schema = {'type': 'object', 'properties': {'text': {'type': 'string'}}}
tool = {'name': 'note', 'description': 'Notes a text, and returns a word.', 'inputSchema': schema}
word = 'piped' if len(sys.argv) == 1 else 'posted'
def answer(asked):
    method, params = asked.get('method'), asked.get('params', {})
    if 'id' not in asked: return None
    reply = {'jsonrpc': '2.0', 'id': asked['id']}
    if method == 'initialize':
        info = {'name': word, 'version': '1'}
        return reply | {'result': {'protocolVersion': params['protocolVersion'], 'capabilities': {'tools': {}}, 'serverInfo': info}}
    if method == 'tools/list': return reply | {'result': {'tools': [tool]}}
    if method != 'tools/call': return reply | {'error': {'code': -32601, 'message': 'no such method'}}
    text = params.get('arguments', {}).get('text')
    if text: open('/workspace/answer.txt', 'w').write(text + '\\n')
    return reply | {'result': {'content': [{'type': 'text', 'text': 'the word is ' + word}]}}
class Handler(BaseHTTPRequestHandler):
    # No reply ends its connection, as with 1.0 or by send_error: OpenCode sends its next request into one that is ending.
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        self.send_response(405)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def do_POST(self):
        reply = answer(json.loads(self.rfile.read(int(self.headers['Content-Length']))))
        body = json.dumps(reply).encode() if reply else b''
        self.send_response(200 if reply else 202)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
if len(sys.argv) > 1: ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
for line in sys.stdin:
    reply = answer(json.loads(line))
    if reply is not None: print(json.dumps(reply), flush=True)
`;

const toml = `[environment]
docker_image = "temper-tasks:bookworm"
memory_mb = 2048
storage_mb = 512
entrypoint = ["python3", "/workspace/server.py", "8125"]
healthcheck = { command = "python3 -c 'import socket; socket.create_connection((\\"127.0.0.1\\", 8125)).close()'", interval_sec = 0.2, retries = 100 }
[[environment.mcp_servers]]
name = "notes"
transport = "stdio"
command = "python3"
args = ["/workspace/server.py"]
[[environment.mcp_servers]]
name = "board"
transport = "streamable-http"
url = "http://127.0.0.1:8125/mcp"
`;

/** The results of the tools, in the order of the calls. */
const words = ['the word is posted', 'the word is piped'];

describe('a task with MCP servers in its sandbox', () => {
  let rollouts: AgentRollouts;
  let task: string;
  let calls: readonly { readonly name: string; readonly arguments: object }[];
  /** The call of OpenCode for as long as it does not offer the servers' tools: it connects to them while it works. */
  const meanwhile = { name: 'bash', arguments: { command: 'sleep 2', description: 'Wait' } };
  let lastPrompt = '';
  before(async () => {
    rollouts = await startAgentRollouts(answer, { taskRoot: 'tasks' });
    const workspace = { 'answer.txt': 'wrong\n', 'server.py': server };
    task = await writeHarborTask(join(rollouts.home, 'tasks'), 'noted', { toml, workspace });
  });
  after(() => rollouts?.close());

  /** The policy's reply: the next call, then a final text; a title if no tools are offered. Some agents load servers late. */
  async function answer(promptIds: readonly number[], { model: { tokens } }: TestGateway): Promise<readonly number[]> {
    const prompt = tokens.decode(promptIds);
    if (!prompt.includes('\n<tools>')) return tokens.encode('A title<|im_end|>');
    lastPrompt = prompt;
    const next = calls[words.filter((word) => prompt.includes(word)).length];
    const call = next !== undefined && !prompt.includes(`"${next.name}"`) ? meanwhile : next;
    const said = call === undefined ? 'Done.' : `Now.\n<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
    return tokens.encode(`${said}<|im_end|>`);
  }

  for (const { agent, hostTool } of agentCases) {
    const calling = ['claude-code', 'codex', 'opencode'].includes(agent);
    it(`${agent} ${calling ? 'calls their tools' : 'is refused it, because it calls none'}`, async () => {
      const named = (name: string): string => hostTool('note').replace('temper', name);
      calls = [
        { name: named('board'), arguments: {} },
        { name: named('notes'), arguments: { text: 'right' } },
      ];
      const { result, evidence } = await rollouts.roll({ task, agent, sandbox: 'docker', maxTurns: 25 });
      if (!calling) {
        assert.deepEqual([result.outcome, result.failure?.type], ['invalid-task', 'UnsupportedTask'], evidence);
        assert.match(result.failure?.message ?? '', /has the MCP server notes over stdio, and agent .* calls none/);
        return;
      }
      assert.deepEqual([result.outcome, result.reward], ['scored', 1], evidence);
      for (const word of words) assert.ok(lastPrompt.includes(word), evidence);
    });
  }
});
