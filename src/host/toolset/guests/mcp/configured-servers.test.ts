/** Tests which servers count, from which file, and what is wrong with the others. */

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { guestStage } from '../../../../../test/mcp/guest-stage.ts'
import { createTrust } from '../../../../config/trust.ts'
import { configuredServers, expanded } from './configured-servers.ts'

const json = (servers: object) => JSON.stringify({ mcpServers: servers })

test('the nearest place wins, and each other one is named', () => {
  using stage = guestStage({ config: '[mcp.servers.a]\ncommand = ["mine", "x"]\n[mcp.servers.b]\ncommand = "mine"\n' })
  writeFileSync(join(stage.home, 'mcp.json'), json({ b: { command: 'added' }, c: { type: 'sse', url: 'https://c.example.org/' } }))
  writeFileSync(join(stage.user, '.mcp.json'), json({ c: { command: 'old' }, d: { command: 'npx', args: ['-y', 'd'], timeout: 5 } }))
  writeFileSync(join(stage.workspace, '.mcp.json'), json({ a: { command: 'theirs' } }))
  createTrust(stage.load().paths.trustedFolders).add(stage.workspace)
  mkdirSync(join(stage.workspace, '.braidclaw'))
  writeFileSync(join(stage.workspace, '.braidclaw/config.toml'), '[mcp.servers.e]\nurl = "https://e.example.org/"\n')
  const { servers, notices, problems } = configuredServers(stage.load())
  const shown = servers.map(({ id, transport, project, key }) => [
    id,
    transport.kind === 'stdio' ? transport.argv.join(' ') : transport.url,
    key,
    project !== undefined,
  ])
  expect(shown).toEqual([
    ['e', 'https://e.example.org/', `${stage.workspace}#e`, true],
    ['a', 'theirs', `${stage.workspace}#a`, true],
    ['b', 'mine', 'b', false],
    ['c', 'https://c.example.org/', 'c', false],
    ['d', 'npx -y d', 'd', false],
  ])
  expect(notices.map((notice) => notice.match(/server (\w)/)?.[1])).toEqual(['a', 'b', 'c'])
  expect(problems).toEqual([])
})

test('a server that is written wrongly is named with its line, and the others count', () => {
  const toml =
    '[mcp.servers.a]\ncomand = "x"\n[mcp.servers.b]\nurl = "https://user:word@b.example.org/"\n[mcp.servers.c]\ncommand = "c"\npermissions = { hosts = ["http://x"] }\n[mcp.servers.d]\ncommand = "d"\n'
  using stage = guestStage({ config: toml })
  writeFileSync(join(stage.user, '.mcp.json'), '{"servers": {}}')
  const { servers, problems } = configuredServers(stage.load())
  expect(servers.map(({ id }) => id)).toEqual(['d'])
  const file = join(stage.home, 'config.toml')
  expect(problems).toEqual([
    `${file}:2: mcp.servers.a.command is missing; it is a text`,
    `${file}:2: mcp.servers.a.command names no program`,
    `${file}:3: mcp.servers.a.comand is not a field of this table; did you mean "command"?`,
    expect.stringContaining('mcp.servers.b.url must be an http or https address without a user or a password'),
    expect.stringContaining('mcp.servers.c.permissions.hosts are host names such as "api.example.org"; got "http://x"'),
    `${join(stage.user, '.mcp.json')} is not JSON such as {"mcpServers": {"memory": {"command": "mcp-server-memory"}}}`,
  ])
})

test('several that add servers at once lose none of them', async () => {
  using stage = guestStage()
  const ids = Array.from({ length: 12 }, (_, at) => `s${at}`)
  const code = (id: string) =>
    `await guestStage({ at: ${JSON.stringify({ home: stage.user, workspace: stage.workspace })} }).mcp().add('${id}', { command: 'x' })`
  const source = JSON.stringify(join(import.meta.dir, '../../../../../test/mcp/guest-stage.ts'))
  const children = ids
    .slice(0, 3)
    .map((id) => Bun.spawn([process.execPath, '-e', `import { guestStage } from ${source}\n${code(id)}`], { stderr: 'pipe' }))
  await Promise.all(ids.slice(3).map((id) => stage.mcp().add(id, { command: 'x' })))
  for (const child of children) expect([await child.stderr.text(), await child.exited]).toEqual(['', 0])
  expect(
    configuredServers(stage.load())
      .servers.map(({ id }) => id)
      .sort(),
  ).toEqual(ids.toSorted())
})

test('"auth" of a server at an address becomes its headers; a program has none', () => {
  using stage = guestStage({ env: { WORD: 'q9f8e7d6c5b4' } })
  const url = 'https://a.example.org/'
  writeFileSync(
    join(stage.user, '.mcp.json'),
    json({
      a: { url, headers: { 'x-team': 'a' }, auth: { token: '${WORD}', headers: { 'x-key': 'k' } } },
      b: { url, auth: { tokn: 'x' } },
    }),
  )
  const setup = stage.load()
  const { servers, problems } = configuredServers(setup)
  const [server] = servers
  expect(server && expanded(server, setup)).toMatchObject({
    headers: { 'x-team': 'a', 'x-key': 'k', authorization: 'Bearer q9f8e7d6c5b4' },
  })
  expect(problems).toEqual([expect.stringContaining('mcp.servers.b.auth.tokn is not a field of this table; did you mean "token"?')])
})

test('variables are replaced when a server starts, and one that is not set stops it', () => {
  using stage = guestStage({ env: { WORD: 'q9f8e7d6c5b4' } })
  const args = ['${WORD}', '${NONE:-else}', '$WORD', '${BRAIDCLAW_STATE}/x']
  writeFileSync(join(stage.user, '.mcp.json'), json({ a: { command: 'a', args, env: { KEY: 'k-${WORD}' } }, b: { command: '${NONE}' } }))
  const setup = stage.load()
  const [a, b] = configuredServers(setup).servers
  if (a === undefined || b === undefined) throw new Error('both are configured')
  const state = expect.stringMatching(/\/mcp\/state\/[0-9a-f]{32}\/x$/)
  expect(expanded(a, setup)).toMatchObject({ argv: ['a', 'q9f8e7d6c5b4', 'else', '$WORD', state], env: { KEY: 'k-q9f8e7d6c5b4' } })
  expect(setup.redactor.text('it is q9f8e7d6c5b4')).toBe('it is [redacted:WORD]')
  expect(expanded(b, setup)).toEqual({ why: expect.stringContaining('the MCP server b needs the variable NONE, which is not set') })
})
