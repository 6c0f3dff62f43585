/** Plugins through the real executable: what is found, asked, run and recorded. The first plugin is seed 001's, word for word. */

import { describe, expect, test } from 'bun:test'
import { appendFileSync, chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { missingForNetwork } from '../../src/sandbox/bubblewrap/command-network.ts'
import { type Nest, nest } from '../support/cli.ts'
import { echoManifest } from '../support/echo-plugin.ts'
import { needs } from '../support/needs.ts'
import { alone, call, home, scripted } from '../support/turns.ts'

const seed = echoManifest()

/** Writes a plugin and returns its folder. */
function plugin(folder: string, manifest = seed, programs: { readonly [path: string]: string } = { 'echo-plugin': '#!/bin/sh\ncat\n' }) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'manifest.toml'), manifest)
  for (const [path, text] of Object.entries(programs)) {
    writeFileSync(join(folder, path), text)
    chmodSync(join(folder, path), 0o755)
  }
  return folder
}

const planted = (at: Nest) => join(at.home, '.braidclaw/plugins/echo-plugin')
const turn = (at: Nest, words: readonly string[] = [], tool = 'echo', args: object = { text: 'hi' }) => {
  const { env } = scripted(at, [call(tool, args), { text: 'told: {{last_tool_result}}' }])
  return at.run(['agent', '-m', 'go', '--approve-all-medium', ...words], { env, through: alone })
}

test('a planted plugin is found, listed as not approved, offered to nobody and never run', async () => {
  using at = nest()
  at.config('\n')
  const ran = join(at.dir, 'ran')
  plugin(planted(at), seed, { 'echo-plugin': `#!/bin/sh\ntouch ${ran}\ncat\n` })
  expect((await at.run(['plugin', 'list'])).stdout).toMatch(/^echo-plugin +0\.1\.0 +not approved$/m)
  expect((await at.run(['plugin', 'show', 'echo-plugin'])).code).toBe(0)
  const asked = await turn(at, ['--sandbox', 'none'])
  expect([asked.code, asked.stderr.includes('unknown tool "echo"')]).toEqual([3, true])
  expect((await at.run(['tool', 'list'])).stdout).not.toContain('echo-plugin')
  const refused = await at.run(['plugin', 'approve', 'echo-plugin'], { through: alone })
  expect([refused.code, refused.stderr.includes('plugin approve echo-plugin --yes')]).toEqual([4, true])
  expect(existsSync(ran)).toBe(false)
})

test('an installation runs nothing, and shows what the plugin may do; a second word approves it', async () => {
  using at = nest()
  at.config('\n')
  const ran = join(at.dir, 'ran')
  const from = plugin(join(at.dir, 'from'), `${seed}\n[permissions]\nhosts = ["api.example.org"]\nvariables = ["API_KEY"]\n`, {
    'echo-plugin': `#!/bin/sh\ntouch ${ran}\n`,
    'package.json': `{"scripts":{"install":"touch ${ran}","preinstall":"touch ${ran}"}}`,
  })
  const { code, stdout, stderr } = await at.run(['plugin', 'install', from], { through: alone })
  expect(code).toBe(0)
  for (const line of ['tool       echo: Echoes input', 'hosts      api.example.org', 'variables  API_KEY', 'sees no file of the workspace'])
    expect(stdout).toContain(line)
  expect(stderr).toContain('it does not run yet; approve it with: braidclaw plugin approve echo-plugin')
  const rows = JSON.parse((await at.run(['plugin', 'list', '--json'])).stdout)
  expect(rows).toMatchObject([{ name: 'echo-plugin', state: 'not approved', source: from, permissions: { hosts: ['api.example.org'] } }])
  expect(existsSync(ran)).toBe(false)
})

test('at a terminal an installation asks: a no approves nothing, a yes exactly these files', async () => {
  using at = nest()
  at.config('\n')
  const from = plugin(join(at.dir, 'from'))
  const no = await at.terminal(['plugin', 'install', from], [['[y/N]', 'n\r']])
  expect([no.code, no.stdout.includes('echo-plugin was not approved')]).toEqual([3, true])
  expect((await at.run(['plugin', 'list'])).stdout).toMatch(/not approved$/m)
  const yes = await at.terminal(['plugin', 'approve', 'echo-plugin'], [['[y/N]', 'y\r']])
  expect([yes.code, yes.stdout.includes('approved: echo-plugin')]).toEqual([0, true])
  expect((await at.run(['plugin', 'list'])).stdout).toMatch(/ approved$/m)
})

test('an update copies the folder again, and what changed waits for a new approval', async () => {
  using at = nest()
  at.config('\n')
  const from = plugin(join(at.dir, 'from'))
  await at.run(['plugin', 'install', from, '--yes'])
  expect((await at.run(['plugin', 'update', 'echo-plugin'], { through: alone })).stdout).toContain(
    'it is approved already, with exactly these files',
  )
  writeFileSync(join(from, 'echo-plugin'), '#!/bin/sh\necho 2\n')
  const { stdout, stderr } = await at.run(['plugin', 'update', 'echo-plugin'], { through: alone })
  expect([stdout.includes('+echo 2'), stderr.includes('it does not run yet')]).toEqual([true, true])
  expect((await turn(at, ['--sandbox', 'none'])).code).toBe(3)
  expect((await at.run(['plugin', 'update', 'echo-plugin', '--yes'])).stdout).toContain('approved: echo-plugin')
  expect((await turn(at, ['--sandbox', 'none'])).stdout).toContain('told: 2')
})

const sandboxes = [['none', test] as const, ['bubblewrap', test.if(needs('bwrap'))] as const]

describe.each(sandboxes)('with --sandbox %s', (sandbox, tried) => {
  tried("the seed's plugin echoes JSON from stdin to stdout, through the gate, with a receipt", async () => {
    using at = nest()
    at.config('\n')
    plugin(planted(at))
    expect((await at.run(['plugin', 'approve', 'echo-plugin', '--yes'])).code).toBe(0)
    const asked = await at.run(['tool', 'run', 'echo', '--sandbox', sandbox, '--json', '{"text":"hi"}'], { through: alone })
    expect([asked.code, asked.stdout]).toEqual([4, ''])
    const ran = await at.run(['tool', 'run', 'echo', '--sandbox', sandbox, '--auto', '--json', '{"text":"hi"}'])
    expect([ran.code, ran.stdout]).toEqual([0, '{"text":"hi"}\n'])
    expect((await turn(at, ['--sandbox', sandbox])).stdout).toContain('told: {"text":"hi"}')
    const receipts = await at.run(['receipt', 'list', '--json'])
    const rows: { tool: string; status: string; sandbox?: string }[] = JSON.parse(receipts.stdout)
    expect(rows.filter(({ tool, status }) => tool === 'echo' && status === 'allowed')).toHaveLength(2)
    expect((await at.run(['receipt', 'verify'])).code).toBe(0)
    expect((await at.run(['tool', 'list'])).stdout).toMatch(/^ {2}echo +medium/m)
  })
})

test('a change after the approval disables it, show prints the difference, and a new approval offers it again', async () => {
  using at = nest()
  at.config('\n')
  plugin(planted(at))
  await at.run(['plugin', 'approve', 'echo-plugin', '--yes'])
  appendFileSync(join(planted(at), 'echo-plugin'), 'echo more\n')
  const { code, stderr } = await turn(at, ['--sandbox', 'none'])
  expect([code, stderr.includes('unknown tool "echo"')]).toEqual([3, true])
  expect(stderr).toContain('plugin echo-plugin is not offered: its files changed after they were approved')
  expect((await at.run(['plugin', 'list'])).stdout).toMatch(/^echo-plugin .* changed$/m)
  expect((await at.run(['plugin', 'show', 'echo-plugin'])).stdout).toContain('+echo more')
  writeFileSync(join(planted(at), 'echo-plugin'), '#!/bin/sh\necho \'"new"\'\n')
  const again = await at.run(['plugin', 'approve', 'echo-plugin', '--yes'])
  expect(again.stdout).toContain(`+echo '"new"'`)
  expect((await turn(at, ['--sandbox', 'none'])).stdout).toContain('told: new')
  const doctor = async () => (await at.run(['doctor'])).stdout
  expect(await doctor()).toMatch(/^✓ plugin +echo-plugin: approved$/m)
  appendFileSync(join(planted(at), 'manifest.toml'), '# more\n')
  expect(await doctor()).toMatch(/^✗ plugin +echo-plugin: its files changed after they were approved/m)
  writeFileSync(join(planted(at), 'manifest.toml'), seed)
  await at.run(['plugin', 'disable', 'echo-plugin'])
  expect((await turn(at, ['--sandbox', 'none'])).code).toBe(3)
  await at.run(['plugin', 'enable', 'echo-plugin'])
  expect((await turn(at, ['--sandbox', 'none'])).code).toBe(0)
  await at.run(['plugin', 'remove', 'echo-plugin'])
  expect((await turn(at, ['--sandbox', 'none'])).code).toBe(3)
  expect(readdirSync(join(at.home, '.braidclaw/plugins'))).toEqual(['approved.json'])
})

test('what a plugin prints moves no terminal and is an error unless it is JSON', async () => {
  using at = nest()
  at.config('\n')
  const description = '"\\u001b]0;owned\\u0007\\nnot a line of its own"'
  plugin(planted(at), seed.replace('"Echoes input"', description), { 'echo-plugin': "#!/bin/sh\nprintf '\\033[2Jwiped\\n'\n" })
  const shown = await at.run(['plugin', 'approve', 'echo-plugin', '--yes'])
  expect(shown.stdout).toContain('echo: \\u{1b}]0;owned')
  expect(shown.stdout).not.toMatch(/^not a line/m)
  const { code, stderr } = await at.run(['tool', 'run', 'echo', '--sandbox', 'none', '--auto'])
  expect([code, stderr.includes('\u001b')]).toEqual([1, false])
  expect(stderr).toContain('it printed no JSON value but "\\u001b[2Jwiped"')
})

const confined = test.if(needs('bwrap'))

confined('in the sandbox it has what its manifest declares and nothing else', async () => {
  using at = nest()
  at.config('\n')
  at.file('notes.txt', 'my notes')
  const probe = `#!/bin/sh
cat >/dev/null
say() { printf '%s ' "$1"; }
[ -r ${at.workspace}/notes.txt ] && say reads || say blind
touch ${at.workspace}/made.txt 2>/dev/null && say writes || say cannot-write
touch "$BRAIDCLAW_TOOL_DIR/made" 2>/dev/null && say own-writes || say own-fixed
[ -r ${at.home}/.braidclaw/config.toml ] && say config || say no-config
say "\${API_KEY-none}" ; say "\${OTHER_KEY-none}"
`
  const run = async (permissions: string) => {
    const quoted = probe.replace('cat >/dev/null', "cat >/dev/null; printf '\"'").concat("printf '\"'\n")
    plugin(planted(at), `${seed}\n[permissions]\n${permissions}\n`, { 'echo-plugin': quoted })
    await at.run(['plugin', 'approve', 'echo-plugin', '--yes'])
    const env = { API_KEY: 'abcdefgh12345', OTHER_KEY: 'ijklmnop12345' }
    const { stdout, stderr } = await at.run(['tool', 'run', 'echo', '--auto'], { env })
    return stdout.trim() || stderr
  }
  expect(await run('')).toBe('blind cannot-write own-fixed no-config none none')
  expect(await run('files = "read"')).toBe('reads cannot-write own-fixed no-config none none')
  // The value of a declared variable is redacted in what is shown.
  expect(await run('variables = ["API_KEY"]')).toMatch(/^blind cannot-write own-fixed no-config \[.*API_KEY.*\] none$/)
  expect(existsSync(join(at.workspace, 'made.txt'))).toBe(false)
  expect(await run('files = "write"')).toBe('reads writes own-fixed no-config none none')
  expect(existsSync(join(at.workspace, 'made.txt'))).toBe(true)
})

const online = test.if(needs('bwrap', 'socat', 'perl', 'curl') && missingForNetwork().length === 0)

online('it reaches the hosts of its manifest, and no other, whatever the configuration lists', async () => {
  using at = home()
  const state = { asked: 0 }
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch() {
      state.asked += 1
      return new Response('"reached"')
    },
  })
  at.config(`[security]\nallowed_domains = ["127.0.0.1"]\nallowed_ports = [${server.port}]\n`)
  const run = async (permissions: string) => {
    const fetch = `#!/bin/sh\ncurl -sS -m 5 --noproxy none http://127.0.0.1:${server.port}/ 2>/dev/null || echo '"closed"'\n`
    plugin(planted(at), `${seed}\n[permissions]\n${permissions}\n`, { 'echo-plugin': fetch })
    await at.run(['plugin', 'approve', 'echo-plugin', '--yes'])
    const { stdout, stderr } = await at.run(['tool', 'run', 'echo', '--auto'])
    return stdout.trim() || stderr
  }
  for (const permissions of ['', 'files = "read"', 'hosts = ["example.org"]'])
    expect([permissions, await run(permissions)]).not.toContain('reached')
  expect(state.asked).toBe(0)
  expect(await run('hosts = ["127.0.0.1"]')).toBe('reached')
  expect(state.asked).toBe(1)
})

const served = `name = "echo-plugin"
version = "0.1.0"
capabilities = ["tool"]
process = "./serve"

[[tools]]
name = "echo"
description = "Echoes input"
schema = { type = "object" }
`

const serve = `#!/usr/bin/env node
const fs = require('node:fs')
let calls = 0
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  const result = method === 'hello' ? { protocol: 1 } : method === 'call' ? { output: 'call ' + ++calls + ', sees ' + fs.existsSync(WORKSPACE) } : {}
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
})
`

test.if(needs('bwrap', 'node'))(
  'a process that stays serves all calls of a conversation from inside the sandbox, and ends with it',
  async () => {
    using at = home()
    at.file('notes.txt', 'x')
    plugin(planted(at), served, { serve: serve.replace('WORKSPACE', JSON.stringify(join(at.workspace, 'notes.txt'))) })
    expect((await at.run(['plugin', 'approve', 'echo-plugin', '--yes'])).stdout).toContain('serve runs as long as what uses it')
    const { env } = scripted(at, [call('echo', { n: 1 }), call('echo', { n: 2 }), { text: 'told: {{last_tool_result}}' }])
    const { stdout, code } = await at.run(['agent', '-m', 'go', '--auto'], { env, through: alone })
    expect([code, stdout]).toEqual([0, 'told: call 2, sees false\n'])
    const rows: { sandbox?: string }[] = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
    expect(rows.map(({ sandbox }) => sandbox)).toEqual(['bubblewrap', 'bubblewrap'])
  },
)
