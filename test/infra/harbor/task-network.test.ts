import assert from 'node:assert/strict';
import { it } from 'node:test';
import { agentNetwork, buildNetwork, testNetwork } from '../../../infra/harbor/task-network.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

const listed = { network_mode: 'allowlist', allowed_hosts: ['PyPI.org', '*.pythonhosted.org'] } as const;
const policy = { mode: 'allowlist', hosts: ['pypi.org', '*.pythonhosted.org'], ports: [80, 443] };

it('the network of the agent is the one of its own table, else of the environment', () => {
  const open = { network_mode: 'public' } as const;
  assert.deepEqual(agentNetwork({ environment: listed, agent: {} }), policy);
  const agent = { ...listed, allowed_ports: [8443] };
  assert.deepEqual(agentNetwork({ environment: open, agent }), { ...policy, ports: [8443] });
  assert.deepEqual(agentNetwork({ environment: {}, agent: open }), { ...policy, mode: 'public', hosts: [] });
  assert.equal(agentNetwork({ environment: listed, agent: { network_mode: 'no-network' } }), undefined);
  // Harbor's default, which most tasks do not use.
  assert.equal(agentNetwork({ environment: open, agent: {} }), undefined);
  assert.equal(agentNetwork({ environment: {}, agent: {} }), undefined);
});

it('ports without hosts in the same table are refused, since they would be left out', () => {
  const message = 'task.toml: agent: network: allowed_ports: expected allowed_hosts in the same table, got none';
  const agent = { allowed_ports: [8443] };
  assert.throws(() => agentNetwork({ environment: listed, agent }), { type: 'MalformedTask', message });
  assert.throws(() => agentNetwork({ environment: { allowed_ports: [8443] }, agent: {} }), { type: 'MalformedTask' });
});

it('fields of tables that ask for no network are not looked at', () => {
  const metadata = { allowed_ports: [8443] };
  const toml = { environment: listed, agent: {}, metadata };
  assert.equal(agentNetwork(toml)?.mode, 'allowlist');
  assert.equal(buildNetwork(toml).mode, 'allowlist');
});

it('hosts that no policy can have are refused by name', () => {
  const refusalOf = (hosts: readonly string[], mode: 'allowlist' | 'public' | undefined): string => {
    try {
      agentNetwork({ environment: {}, agent: { network_mode: mode, allowed_hosts: hosts } });
    } catch (error) {
      assert.ok(error instanceof TemperFailure);
      return `${error.type}: ${error.message}`;
    }
    return 'none';
  };
  const name = /^MalformedTask: task\.toml: agent: network: hosts\.0: expected the name of a host, .*, got/;
  for (const host of ['10.0.0.1', '*', '*.*.org', 'localhost', 'a.org:443', 'http://a.org', '[::1]', 'a.org.']) {
    assert.match(refusalOf([host], 'allowlist'), name);
  }
  const mode = /hosts: expected hosts with the mode "allowlist", and none with another/;
  for (const refusal of [refusalOf([], 'allowlist'), refusalOf(['a.org'], 'public'), refusalOf(['a.org'], undefined)]) {
    assert.match(refusal, mode);
  }
});

it('the network of the tests is the one of the verifier, else of the environment, whose default is optional', () => {
  const open = { network_mode: 'public' } as const;
  const none = { network_mode: 'no-network' } as const;
  const optional = { mode: 'public', hosts: [], ports: [80, 443], optional: true };
  const rewarded = { judgedByLog: false, download: null };
  const judged = { judgedByLog: true, download: null };
  const tables = { environment: {}, agent: {}, verifier: {} };
  assert.deepEqual(testNetwork({ ...tables, verifier: listed }, judged), policy);
  assert.deepEqual(testNetwork({ ...tables, verifier: open }, rewarded), { ...policy, mode: 'public', hosts: [] });
  assert.deepEqual(testNetwork({ ...tables, environment: listed }, rewarded), policy);
  assert.equal(testNetwork({ ...tables, environment: listed, verifier: none }, rewarded), undefined);
  // Harbor's default. Tests that are judged by their log have it only where the task says so.
  assert.deepEqual(testNetwork({ ...tables, environment: open }, judged), optional);
  assert.deepEqual(testNetwork(tables, rewarded), optional);
  assert.equal(testNetwork(tables, judged), undefined);
  assert.equal(testNetwork({ ...tables, environment: none }, rewarded), undefined);
  assert.equal(testNetwork({ ...tables, environment: { allow_internet: false } }, rewarded), undefined);
  assert.deepEqual(testNetwork({ ...tables, environment: { allow_internet: true } }, rewarded), optional);
  // Tests that download need what they have by default, and no more than their task lets them have.
  const download = 'tests/test.sh:1: pip install pytest';
  const needed = { mode: 'public', hosts: [], ports: [80, 443], neededFor: download };
  assert.deepEqual(testNetwork(tables, { ...rewarded, download }), needed);
  assert.deepEqual(testNetwork({ ...tables, environment: open }, { ...judged, download }), needed);
  assert.equal(testNetwork(tables, { ...judged, download }), undefined);
  assert.equal(testNetwork({ ...tables, environment: none }, { ...rewarded, download }), undefined);
  assert.deepEqual(testNetwork({ ...tables, verifier: listed }, { ...rewarded, download }), policy);
  // The agent's table says nothing about the tests.
  assert.deepEqual(testNetwork({ ...tables, agent: listed }, rewarded), optional);
});

it('the build of an image has the hosts of the environment, or every public address', () => {
  const open = { mode: 'public', hosts: [], ports: [80, 443] };
  assert.deepEqual(buildNetwork({ environment: listed }), policy);
  for (const mode of ['public', 'no-network', undefined] as const) {
    assert.deepEqual(buildNetwork({ environment: { network_mode: mode } }), open);
  }
});
