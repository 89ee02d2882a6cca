import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ClientCertificate, clientCertificateOf, expiryText } from '../../../infra/temporal/client-certificate.ts';
import { createCertificate } from '../../helpers/certificate.ts';

const hourMs = 3_600_000;

describe('the client certificate for a Temporal server', () => {
  it('is read from the files of the connection', async () => {
    const { cert, key } = await createCertificate('client.test');
    const found = clientCertificateOf({ tls: { clientCertPair: { crt: Buffer.from(cert), key: Buffer.from(key) } } });
    assert.equal(found?.subject, 'CN=client.test');
    const hoursLeft = ((found?.expiresAt.getTime() ?? 0) - Date.now()) / hourMs;
    assert.ok(hoursLeft > 47 && hoursLeft <= 48, String(hoursLeft));
    // It lasts for two days, of which a quarter is twelve hours.
    assert.equal(found?.noticeAt.getTime(), (found?.expiresAt.getTime() ?? 0) - 12 * hourMs);
  });

  it('is null without TLS, without a certificate and with a file that has none', () => {
    const noPem = { clientCertPair: { crt: Buffer.from('no PEM'), key: Buffer.from('none') } };
    for (const tls of [false, true, {}, noPem]) assert.equal(clientCertificateOf({ tls }), null);
  });

  it('is spoken of before and after its end', () => {
    const endMs = Date.parse('2026-03-01T12:00:00.000Z');
    const noticeAt = new Date(endMs - 14 * 24 * hourMs);
    const certificate: ClientCertificate = { subject: 'CN=any', expiresAt: new Date(endMs), noticeAt };
    const textAt = (hoursLeft: number) => expiryText(certificate, endMs - hoursLeft * hourMs);
    assert.equal(textAt(15 * 24), null);
    assert.equal(textAt(13 * 24), 'expires at 2026-03-01T12:00:00.000Z');
    assert.equal(textAt(-1), 'expired at 2026-03-01T12:00:00.000Z');
  });
});
