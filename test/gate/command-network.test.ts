/** A command reaches the hosts of its plan and nothing else, and a person allows them by name. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { missingForNetwork } from '../../src/sandbox/bubblewrap/command-network.ts'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const online = test.if(needs('bwrap', 'socat', 'perl', 'curl') && missingForNetwork().length === 0)

const state: { server?: { readonly port?: number; stop(now: boolean): unknown }; asked: number } = { asked: 0 }
beforeAll(() => {
  const fetch = () => {
    state.asked += 1
    return new Response('reached')
  }
  state.server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch })
})
afterAll(() => void state.server?.stop(true))

const port = () => state.server?.port ?? 0

/** The server's address is private, so only allowed_domains can open it. */
function listing(): Nest {
  return home('', `allowed_domains = ["127.0.0.1", "example.org"]\nallowed_ports = [${port()}]\n`)
}

const curl = () => `curl -sS -m 5 --noproxy none http://127.0.0.1:${port()}/`

describe('with the host in allowed_domains', () => {
  online('nobody to ask means no, and the question names the host', async () => {
    using at = listing()
    const { code } = await turn(at, [call('shell', { command: curl() }), { text: 'done' }], ['--auto'], { through: alone })
    expect([code, state.asked]).toEqual([4, 0])
    expect((await at.run(['approvals', 'list'])).stdout).toContain('[network: 127.0.0.1]')
  })

  online('a yes opens it, and full needs none', async () => {
    using at = listing()
    const said = await at.terminal(['agent', '-m', 'go'], [['[y/N', 'y\r']], {
      env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('shell', { command: curl() }), { text: 'So: {{last_tool_result}}' }]) },
    })
    expect(said.stdout).toContain('gets network access to 127.0.0.1')
    expect(said.stdout).toContain('So: reached')
    const again = await at.run(['tool', 'run', 'shell', '--autonomy', 'full', '--json', JSON.stringify({ command: curl() })])
    expect([again.code, again.stdout, state.asked]).toEqual([0, 'reached\n', 2])
  })

  online('a command that does not name it has no network, and one that names another host reaches only that', async () => {
    using at = listing()
    at.file('fetch.sh', `${curl()} 2>&1; echo "ended with $?"\n`)
    const shell = (args: object) => at.run(['tool', 'run', 'shell', '--autonomy', 'full', '--json', JSON.stringify(args)])
    const before = state.asked
    expect((await shell({ command: 'bash fetch.sh' })).stdout).toMatch(/ended with (7|56)\n$/)
    expect((await shell({ command: 'bash fetch.sh', network: ['example.org'] })).stdout).toContain('is not one of the hosts')
    expect(state.asked).toBe(before)
    expect((await shell({ command: 'bash fetch.sh', network: ['127.0.0.1'] })).stdout).toContain('reached')
  })
})
