import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Made for this test alone, for the name ok.test, valid from 2020 to 2120; no client trusts it unless configured to.
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5mJIsOcHDYxhtMud
ES/fSuMTUTjZwpFJpuphlieHGyOhRANCAASFQAVIl82HC3D+3146VTAgKLnLtwJH
9mjISvyv7QS5n726B8oAKqDIhQ0ZOcGOqqVm7VFNk+3e/8+2fwZD/oO+
-----END PRIVATE KEY-----`
const cert = `-----BEGIN CERTIFICATE-----
MIIBWzCCAQGgAwIBAgIBATAKBggqhkjOPQQDAjASMRAwDgYDVQQDDAdvay50ZXN0
MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjASMRAwDgYDVQQDDAdv
ay50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhUAFSJfNhwtw/t9eOlUw
ICi5y7cCR/ZoyEr8r+0EuZ+9ugfKACqgyIUNGTnBjqqlZu1RTZPt3v/Ptn8GQ/6D
vqNGMEQwDwYDVR0TAQH/BAUwAwEB/zASBgNVHREECzAJggdvay50ZXN0MB0GA1Ud
DgQWBBR+0eP1YWCBWRvdGhofO2Zfa/kSrDAKBggqhkjOPQQDAgNIADBFAiBaZiLI
LQ4zmiRYsxNak/B+kRJjfq0B/BydjolVVhTg+gIhAO6k4XYWMW/ydCh/qG9+5qxC
I2hTTFaFBwbnERtr8fHK
-----END CERTIFICATE-----`

/** Requests the URL in a separate process that trusts the certificate or does not. */
async function ask(url: string, trusted: boolean): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-tls-'))
  writeFileSync(join(folder, 'ca.pem'), cert)
  const script = `
    import { createGuardedFetch } from ${JSON.stringify(join(import.meta.dir, 'guarded.ts'))}
    const yes = () => ({ ok: true })
    const guard = createGuardedFetch({ judgeUrl: yes, judgeAddress: yes, resolve: async () => ['127.0.0.1'], maxBytes: 99, timeoutMs: 5000 })
    console.log(JSON.stringify(await guard.get('${url}')))`
  const env = trusted ? { NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') } : {}
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', env })
  const answer: unknown = JSON.parse(await new Response(child.stdout).text())
  rmSync(folder, { recursive: true })
  return answer
}

test('https to a pinned address still wants a certificate that somebody vouches for, and for the name in the URL', async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, tls: { key, cert }, fetch: () => new Response('tls ok') })
  const refused = (why: string) => ({ ok: false, message: expect.stringContaining(why) })
  expect(await ask(`https://ok.test:${server.port}/`, false)).toMatchObject(refused('SELF_SIGNED'))
  expect(await ask(`https://other.test:${server.port}/`, true)).toMatchObject(refused('ALTNAME_INVALID'))
  expect(await ask(`https://ok.test:${server.port}/`, true)).toMatchObject({ ok: true, body: 'tls ok' })
  await server.stop(true)
})
