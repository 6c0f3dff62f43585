/**
 * The official conformance package against /mcp. It speaks 2025-11-25. The scenarios that fail call tools, prompts and resources of its own
 * names (`test_…`), or want what is not offered: log levels, subscriptions, images, streams that continue.
 */

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { gateway } from '../support/gateway.ts'
import { given } from '../support/needs.ts'
import { home } from '../support/turns.ts'

const program = join(import.meta.dir, '../control/foreign/node_modules/@modelcontextprotocol/conformance/dist/index.js')
const isThere = existsSync(program) || Bun.env.CI === 'true'

const passing = [
  ...['server-initialize', 'ping', 'tools-list', 'tools-call-error', 'resources-list', 'prompts-list', 'dns-rebinding-protection'],
  // It finds the text of an unknown tool's error simple enough.
  'tools-call-simple-text',
  'completion-complete',
]

test.if(given(isThere, 'the MCP conformance package (run scripts/setup-debian --tests)'))(
  'scenarios that need no tools of their own names pass',
  async () => {
    using at = home()
    await using server = await gateway(at)
    /** The package has no flag for a token. It leaves a foreign Host or Origin as it is. */
    const proxy = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch(request) {
        const headers = new Headers(request.headers)
        headers.set('authorization', `Bearer ${server.token}`)
        for (const name of ['host', 'origin'])
          headers.set(name, headers.get(name)?.replace(/(localhost|127\.0\.0\.1):\d+$/, `127.0.0.1:${server.port}`) ?? '')
        if (headers.get('origin') === '') headers.delete('origin')
        return fetch(`${server.url}/mcp`, { method: request.method, headers, body: request.body })
      },
    })
    const results = join(at.dir, 'results')
    const words = [process.execPath, program, 'server', '--url', `http://localhost:${proxy.port}/mcp`, '--suite', 'all', '-o', results]
    const child = Bun.spawn(words, { stdout: 'pipe', stderr: 'ignore' })
    const summary = (await child.stdout.text()).split('=== SUMMARY ===')[1] ?? ''
    void proxy.stop(true)
    const passed = [...summary.matchAll(/^. ([\w-]+): ([1-9]\d*) passed, 0 failed$/gm)].map(([, name]) => name ?? '')
    expect(passed.sort()).toEqual(passing.sort())
  },
  120_000,
)
