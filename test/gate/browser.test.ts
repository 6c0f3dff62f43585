/** The tool browser through the real executable: offered only when it is switched on, judged like http, foreign text for the rules of data. */

import { test as always, expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { minimumConfig, type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'

const test = always.if(needs('bwrap', 'chromium'))

function startSite() {
  const seen: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      seen.push(`${request.method} ${new URL(request.url).pathname}`)
      return new Response('<title>Site</title><form action=/send method=post><button>Send</button></form>', {
        headers: { 'content-type': 'text/html' },
      })
    },
  })
  return { seen, port: server.port, url: `http://127.0.0.1:${server.port}/`, [Symbol.dispose]: () => void server.stop(true) }
}

function config(home: Nest, tools: string, security = ''): void {
  home.config(
    `${minimumConfig.replace('[security]\n', `[security]\n${security}\n`).replace(/tools_allow = .*\n/, '')}\n[tools]\n${tools}\n`,
  )
}

const call = (input: object, id = 'b') => ({ tool_calls: [{ id, name: 'browser', arguments: input }] })
const use = (home: Nest, input: object, flags: readonly string[] = []) =>
  home.run(['tool', 'run', 'browser', ...flags, '--json', JSON.stringify(input)])

test('it is offered only when it is switched on', async () => {
  using home = nest()
  config(home, '')
  expect((await home.run(['tool', 'list'])).stdout).not.toContain('browser')
  config(home, 'browser = true')
  expect((await home.run(['tool', 'list'])).stdout).toContain('browser')
  expect((await home.run(['tool', 'list'], { env: { CHROMIUM: '/nowhere' } })).stdout).not.toContain('browser')
})

test('a host that is not listed asks, an address of this machine is denied, and nothing is sent', async () => {
  using home = nest()
  using site = startSite()
  config(home, 'browser = true', `allowed_ports = [${site.port}]`)
  expect(await use(home, { action: 'open', url: site.url })).toMatchObject({ code: 3 })
  expect(await use(home, { action: 'open', url: 'https://example.org/' })).toMatchObject({ code: 4 })
  expect(site.seen).toEqual([])
})

test('one conversation reads a page, may not send unasked, and a dry run writes nothing', async () => {
  using home = nest()
  using site = startSite()
  config(home, 'browser = true', `allowed_domains = ["127.0.0.1"]\nallowed_ports = [${site.port}]`)
  const page = `p1@http://127.0.0.1:${site.port}`
  const turn = (second: object, ...flags: readonly string[]) => {
    const fixture = home.fixture([call({ action: 'open', url: site.url }, 'a'), call(second, 'b'), { text: 'done' }])
    return home.run(['agent', '-m', 'look', '--output-format', 'stream-json', ...flags], { env: { BRAIDCLAW_MOCK_FIXTURE: fixture } })
  }
  const { stdout, code } = await turn({ action: 'submit', page, ref: 'e3' })
  expect([code, stdout.includes('button'), site.seen]).toEqual([4, true, ['GET /']])
  expect((await turn({ action: 'submit', page, ref: 'e3' }, '--approve-all-medium')).code).toBe(0)
  expect(site.seen).toEqual(['GET /', 'GET /', 'POST /send'])
  const dry = await use(home, { action: 'screenshot', page, path: 's.png' }, ['--dry-run', '--auto'])
  expect(dry.stdout + dry.stderr).toContain('dry_run: browser would have an effect')
  expect(existsSync(join(home.workspace, 's.png'))).toBe(false)
})
