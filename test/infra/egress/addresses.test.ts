import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { it } from 'node:test';
import { isRefused } from '../../../infra/egress/addresses.ts';
import { EgressRefusedError } from '../../../infra/egress/refused.ts';
import { readAuthority, readHttpAddress } from '../../../infra/egress/target.ts';

it('only public addresses of other machines are reachable', () => {
  const own = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
  const refused = [
    '0.0.0.0',
    '10.1.2.3',
    '100.100.100.200',
    '127.0.0.1',
    '127.255.0.1',
    '169.254.169.254',
    '172.31.0.1',
    '192.0.0.192',
    '192.168.0.1',
    '198.19.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '168.63.129.16',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '::8.8.8.8',
    '64:ff9b::a00:1',
    'fd00:ec2::254',
    'fe80::1',
    '2002:7f00:1::',
    '2001:0:1::',
    '2001:db8::1',
    'ff02::1',
    'localhost',
    '',
    '8.8.8.8.',
    '0x7f.1',
    '2130706433',
    ...own,
  ];
  assert.deepEqual(
    refused.filter((address) => !isRefused(address)),
    [],
  );
  const reachable = ['1.1.1.1', '8.8.8.8', '100.128.0.1', '172.32.0.1', '2606:4700:4700::1111', '2a00:1450::1'];
  assert.deepEqual(
    reachable.filter((address) => isRefused(address)),
    [],
  );
});

it('a host is read in one way only, and in lower case', () => {
  assert.deepEqual(readAuthority('PyPI.org:443', null), { host: 'pypi.org', port: 443 });
  assert.deepEqual(readHttpAddress('HTTP://a.test?q=1'), { host: 'a.test', port: 80, path: '/?q=1' });
  const refused = [
    '127.0.0.1:443',
    '2130706433:443',
    '0x7f000001:443',
    '0177.0.0.1:443',
    '127.1:443',
    '1.0x7f:443',
    '[::1]:443',
    '[::ffff:127.0.0.1]:443',
    '::1:443',
    'user@a.test:443',
    'a.test@b.test:443',
    'a.test.:443',
    'localhost:443',
    'a.test:0',
    'a.test:65536',
    'a.test:0443',
    'a.test:+443',
    'a.test:443:443',
    'a.test',
    ':443',
    ...[
      'a..test:443',
      '-a.test:443',
      'ä.test:443',
      'a.test\u0000.b.test:443',
      'a.test/b:443',
      'a.test%2eb:443',
      '*.a.test:443',
    ],
    `${'a.'.repeat(126)}test:443`,
  ];
  const isOne = (text: string): boolean => {
    try {
      readAuthority(text, null);
      return true;
    } catch (error) {
      assert.ok(error instanceof EgressRefusedError);
      return false;
    }
  };
  assert.deepEqual(refused.filter(isOne), []);
});
