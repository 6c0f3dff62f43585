/** Packages come from a registry after a yes that names its host, and without a question at the level full where the host is listed. */

import { afterAll, test as always, beforeAll, describe, expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingForNetwork } from '../../src/sandbox/bubblewrap/command-network.ts'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const isTried = needs('bwrap', 'socat', 'perl', 'npm', 'pip', 'python3', 'tar') && missingForNetwork().length === 0
const test = always.if(isTried)

const made = mkdtempSync(join(tmpdir(), 'registry-'))
const state: { server?: { readonly port?: number; stop(now: boolean): unknown }; asked: string[] } = { asked: [] }

/** One package of npm and one of pip, named demo. */
const pack = String.raw`
import zipfile
with zipfile.ZipFile('demo-1.0.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('demo.py', 'said = 1\n')
    wheel.writestr('demo-1.0.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: demo\nVersion: 1.0.0\n')
    wheel.writestr('demo-1.0.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr('demo-1.0.0.dist-info/RECORD', 'demo.py,,\ndemo-1.0.0.dist-info/METADATA,,\ndemo-1.0.0.dist-info/WHEEL,,\ndemo-1.0.0.dist-info/RECORD,,\n')
`

beforeAll(() => {
  if (!isTried) return
  mkdirSync(join(made, 'package'))
  writeFileSync(join(made, 'package/package.json'), '{"name":"demo","version":"1.0.0"}')
  writeFileSync(join(made, 'package/index.js'), 'module.exports = 1\n')
  const packed = [spawnSync('tar', ['czf', 'demo.tgz', 'package'], { cwd: made }), spawnSync('python3', ['-c', pack], { cwd: made })]
  expect(packed.map(({ status }) => status)).toEqual([0, 0])
  state.server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer })
})
afterAll(() => {
  state.server?.stop(true)
  rmSync(made, { recursive: true, force: true })
})

const registry = () => `http://127.0.0.1:${state.server?.port ?? 0}`

function answer(request: Request): Response {
  const { pathname } = new URL(request.url)
  state.asked.push(pathname)
  const file = /(demo\.tgz|demo-1\.0\.0-py3-none-any\.whl)$/.exec(pathname)?.[0]
  if (file) return new Response(readFileSync(join(made, file)))
  if (pathname === '/simple/demo/')
    return new Response(`<a href="${registry()}/demo-1.0.0-py3-none-any.whl">demo</a>`, { headers: { 'content-type': 'text/html' } })
  if (pathname !== '/demo') return new Response('{}', { status: 404 })
  const version = { name: 'demo', version: '1.0.0', dist: { tarball: `${registry()}/demo.tgz` } }
  return Response.json({ name: 'demo', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } })
}

/** The server's address is private, so it must be listed exactly. */
const listing = (): Nest => home('', `allowed_domains = ["@npm", "@pypi", "127.0.0.1"]\nallowed_ports = [${state.server?.port ?? 0}]\n`)

// Programs of the sandbox reach their own loopback without the proxy, and the registry is outside.
const npm = () => `NO_PROXY= no_proxy= npm install --no-audit --no-fund --registry ${registry()} demo`
const pip = () =>
  `NO_PROXY= no_proxy= pip install -q --disable-pip-version-check --no-cache-dir --target lib --index-url ${registry()}/simple demo`

describe('with the host in allowed_domains', () => {
  test.each([
    ['npm', npm, 'node_modules/demo/index.js'],
    ['pip', pip, 'lib/demo.py'],
  ])(
    '%s asks first, by the name of the host, and installs after a yes and at the level full',
    async (_, command, file) => {
      using at = listing()
      at.file('package.json', '{"name":"p","version":"1.0.0"}')
      state.asked = []
      const script = [call('shell', { command: command(), timeout: 60 }), { text: 'over' }]
      expect((await turn(at, script, ['--auto'], { through: alone })).code).toBe(4)
      expect([state.asked, existsSync(join(at.workspace, file))]).toEqual([[], false])
      expect((await at.run(['approvals', 'list'])).stdout).toContain('[network: 127.0.0.1]')
      const installed = await at.run([
        'tool',
        'run',
        'shell',
        '--autonomy',
        'full',
        '--json',
        JSON.stringify({ command: command(), timeout: 60 }),
      ])
      expect([installed.code, installed.stderr, existsSync(join(at.workspace, file))]).toEqual([0, '', true])
      expect(state.asked.length).toBeGreaterThanOrEqual(2)
    },
    120_000,
  )

  test('the lists of npm and pip stand for their hosts: the question names them and does not call them unlisted', async () => {
    using at = listing()
    for (const [command, host] of [
      ['npm install', 'registry.npmjs.org'],
      ['pip install -r requirements.txt', 'files.pythonhosted.org, pypi.org'],
    ] as const) {
      const { stdout } = await at.run(['policy', 'explain', '--json', '--', command])
      const { verdict, rule, reason, network, levels } = JSON.parse(stdout)
      expect([verdict, rule, network.join(', '), levels.full.verdict]).toEqual(['ask', 'autonomy.network_asks', host, 'allow'])
      expect(reason).toBe(`it gets network access to ${host}; what it sends cannot be taken back`)
    }
    const { stdout } = await at.run(['policy', 'explain', '--', 'cargo add serde'])
    expect(stdout).toContain('not in allowed_domains: crates.io')
  })
})
