import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { needs } from '../../../test/support/needs.ts'
import { missingForNetwork } from '../../sandbox/bubblewrap/command-network.ts'
import { createSandbox } from '../../sandbox/create-sandbox.ts'
import { confined } from '../../sandbox/fixture.ts'
import { prepareGround } from '../../sandbox/probe/probe-fixture.ts'
import { probeSandbox } from '../../sandbox/run-probes.ts'
import { policyWith } from '../../security/gate.fixture.ts'
import type { Policy } from '../../security/policy.ts'
import { spawnPlain } from '../../tools/process.ts'
import { networkFor, sandboxNetwork } from './network.ts'

const possible = needs('bwrap', 'socat', 'perl', 'curl') && missingForNetwork().length === 0

const seen: string[] = []
const servers: { readonly port?: number; stop(now: boolean): unknown }[] = []
beforeAll(() => {
  const fetch = (request: Request) => {
    seen.push(`${request.method} ${request.headers.get('host')} ${new URL(request.url).pathname}`)
    return new Response('the listed host')
  }
  for (let count = 0; count < 2; count++) servers.push(Bun.serve({ hostname: '127.0.0.1', port: 0, fetch }))
})
afterAll(() => {
  for (const server of servers) server.stop(true)
})
const port = (at: number) => servers[at]?.port ?? 0

function policy(allowedDomains: readonly string[], allowedPorts: readonly number[] = []): Policy {
  return policyWith({ autonomy: 'full', workspace: '/w', allowedDomains, allowedPorts })
}

const opening = (hosts: readonly string[], ports: readonly number[] = []) => ({ policy: policy(hosts, ports), hosts })

const said: string[] = []
const log = (_: string, event: string, fields: object = {}) => void said.push(`${event} ${JSON.stringify(fields)}`)

describe('a listed name that means a private address is not connected to', () => {
  test.each([
    ['localhost', 'url.local_name'],
    ['printer.local', 'url.local_name'],
    ['10.0.0.1', 'url.private_address'],
  ])('%s', async (host, denied) => {
    const { dial } = await networkFor({ policy: policy(host === '10.0.0.1' ? [] : [host]), hosts: [host] })
    expect(await dial({ host, port: 80 })).toMatchObject({ ok: false, denied })
  })

  test('a name that is not listed, and a port that is not', async () => {
    const { dial } = await networkFor({ policy: policy([]), hosts: ['example.org'] })
    expect(await dial({ host: 'example.com', port: 443 })).toMatchObject({ ok: false, denied: 'url.not_listed' })
    expect(await dial({ host: 'example.org', port: 22 })).toMatchObject({ ok: false, denied: 'url.port' })
  })
})

test('without what it needs, and without a namespace to close, there is no way out, and that is said', async () => {
  expect(await sandboxNetwork('none', opening(['example.org']), { log })).toEqual({ allowedDomains: [] })
  expect(await sandboxNetwork('auto', opening([]), { log })).toEqual({ allowedDomains: [] })
  expect(await sandboxNetwork('landlock', opening(['example.org']), { log })).toEqual({ allowedDomains: [] })
  expect(said.splice(0)).toEqual([expect.stringContaining('network for commands needs bubblewrap')])
})

const curl = (url: string, more = '') => `curl -sS -m 5 --noproxy none ${more} ${url} 2>&1`

test.if(possible)(
  'listed hosts and ports are reached; no other port, no name for the same address, and nothing past the proxy',
  async () => {
    const place = `127.0.0.1:${port(0)}`
    using box = await confined({ ...(await sandboxNetwork('auto', opening(['127.0.0.1', 'rebound.test'], [port(0)]), { log })), log })
    const get = async (script: string) => (await box.run(script)).stdout
    expect(await get(curl(`http://${place}/plain`))).toBe('the listed host')
    expect(await get(curl(`http://${place}/tunnel`, '-p'))).toBe('the listed host')
    expect(await get(curl(`http://${place}/sent`, '-d text'))).toBe('the listed host')
    expect(await get(curl(`http://127.0.0.1:${port(1)}/`))).toContain('only the ports 80, 443')
    expect(await get(curl(`http://localhost:${port(0)}/`))).toContain('is not one of the hosts')
    expect(await get(curl(`http://169.254.169.254/latest`))).toContain('is not one of the hosts')
    expect(await get(curl(`http://127.0.0.1.nip.test:${port(0)}/`))).toContain('is not one of the hosts')
    expect(await get(curl(`http://rebound.test:${port(0)}/`))).toMatch(/not found|private/)
    expect((await box.run(`curl -sS -m 5 --noproxy '*' http://${place}/past`)).code).toBe(7)
    expect(seen).toEqual([`GET ${place} /plain`, `GET ${place} /tunnel`, `POST ${place} /sent`])
    expect(said.filter((line) => line.startsWith('sandbox network refused'))).toHaveLength(5)
  },
  120_000,
)

test.if(possible)(
  'with a listed host the probe still gets nowhere',
  async () => {
    const ground = prepareGround()
    try {
      const settings = { ...ground.settings, ...(await sandboxNetwork('auto', opening(['example.org']), { log })) }
      const made = await createSandbox({ kind: 'bubblewrap', ...settings, spawnPlain, log })
      if (!made.ok) throw new Error(made.missing)
      const results = await probeSandbox(made.sandbox, { ground })
      made.sandbox.close?.()
      expect(results.filter(({ stopped, skipped }) => !stopped && !skipped)).toEqual([])
      expect(results.find(({ attempt }) => attempt.includes('through the proxy'))?.detail).toContain('403')
      expect(results.length).toBeGreaterThan(30)
    } finally {
      ground.remove()
    }
  },
  120_000,
)
