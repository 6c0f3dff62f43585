/** Tests what `config validate` says about values that are valid one by one, with real files, links and modes. */

import { expect, test } from 'bun:test'
import { chmodSync, linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelRows } from '../channels/list.ts'
import { loadConfig } from './load.ts'
import { validateConfig } from './validate.ts'

function stage() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-validate-')))
  const home = join(root, '.braidclaw')
  for (const path of ['.braidclaw/tools', 'ws/sub']) mkdirSync(join(root, path), { recursive: true })
  const file = join(home, 'config.toml')
  const input = {
    home,
    cwd: join(root, 'ws'),
    channels: channelRows,
    env: { HOME: root, K: 'x' },
    trusted: () => false,
    tools: ['time', 'file_read'],
  }
  const write = (text: string) => {
    writeFileSync(file, text.includes('workspace_dir') ? text : `workspace_dir = "~/ws"\n${text}`)
    chmodSync(file, 0o600)
  }
  const found = () => {
    const { warnings, ...result } = validateConfig(input)
    const line = ({ key, message }: { key: string; message: string }) => `${key}: ${message}`.replaceAll(root, '~')
    return { problems: result.ok ? [] : result.problems.map(line), warnings: warnings.map(line) }
  }
  const validate = (text: string) => {
    write(text)
    return found()
  }
  const loads = () => loadConfig(input).ok
  return { root, file, validate, found, loads, write, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) }
}

const fine = { problems: [], warnings: [] }

test('what a careful user writes stays valid', () => {
  using at = stage()
  writeFileSync(join(at.root, '.braidclaw/tools/weather.sh'), '')
  for (const text of [
    '',
    '[memory]\npath = "/dev/shm/braidclaw-x/memory.db"\n',
    '[memory]\npath = "~/elsewhere/memory.db"\n[receipts]\npath = "~/elsewhere/receipts.log"\n',
    '[security]\nforbidden_paths = ["~/ws/sub", "~/w", "~/.ssh"]\n',
    '[channels.cli]\ntools_allow = ["time", "weather", "mail"]\n[tools]\nexecutables = ["mail"]\n',
    '[providers.models.x]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "http://[::1]:8080/v1"\napi_key_env = "K"\n',
    '[providers.models.x]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "http://10.0.0.7:8080/v1"\n',
    'workspace_dir = "~/ws/sub"\n',
  ])
    expect([text, at.validate(text)]).toEqual([text, fine])
})

test.each(['/proc/self/x.db', '/sys/x', '/dev/null', '~/link/x.db', '~/ws/../link/x.db'])('no records in %s', (path) => {
  using at = stage()
  symlinkSync('/proc', join(at.root, 'link'))
  for (const key of ['memory', 'receipts']) {
    const { problems } = at.validate(`[${key}]\npath = "${path}"\n`)
    expect(problems).toEqual([
      expect.stringMatching(new RegExp(`^${key}\\.path: .* is in /(proc|sys|dev), where .*; name a file in your home folder`)),
    ])
    // A start goes on: the first act then ends with exit 9 and the reason.
    expect(at.loads()).toBe(true)
  }
})

test.each(['~/a.db', '~/ws/../a.db', '~/A.db', '~/ws/link', '~/folder/a.db', '~/a.db-wal', '~/hard'])(
  'not one file for memory and receipts: %s',
  (path) => {
    using at = stage()
    symlinkSync('../a.db', join(at.root, 'ws/link'))
    symlinkSync('.', join(at.root, 'folder'))
    if (path === '~/hard') {
      writeFileSync(join(at.root, 'a.db'), '')
      linkSync(join(at.root, 'a.db'), join(at.root, 'hard'))
    }
    const { problems } = at.validate(`[memory]\npath = "~/a.db"\n[receipts]\npath = "${path}"\n`)
    expect(problems).toEqual([
      expect.stringMatching(/^receipts\.path: .* is a file of memory\.path \("~\/a\.db"\), .*; name another file$/),
    ])
    expect(at.loads()).toBe(false)
  },
)

test.each(['~/ws', '~', '~/link', '~/WS/'])('no forbidden path over the workspace: %s', (path) => {
  using at = stage()
  symlinkSync('ws', join(at.root, 'link'))
  expect(at.validate(`[security]\nforbidden_paths = ["/opt", "${path}"]\n`).problems).toEqual([
    expect.stringMatching(/^security\.forbidden_paths: .* covers the workspace "~\/ws", .* take it out, or choose another workspace_dir$/),
  ])
})

test('a workspace that no command may have; in the home folder itself file tools may work', () => {
  using at = stage()
  for (const path of ['/', '/usr', '/etc', '/proc/self'])
    expect(at.validate(`workspace_dir = "${path}"\n`).problems).toEqual([
      expect.stringMatching(/^workspace_dir: .*choose a folder of its own/),
    ])
  symlinkSync('.', join(at.root, 'link'))
  for (const path of ['~', '~/link'])
    expect(at.validate(`workspace_dir = "${path}"\n`)).toEqual({
      problems: [],
      warnings: [expect.stringContaining('it is, or contains, your home folder')],
    })
})

test('a file that others may change', () => {
  using at = stage()
  at.write('')
  chmodSync(at.file, 0o666)
  expect(at.found().problems).toEqual([
    ': its mode is 0666, so every user of this machine may change what the agent may do; run: chmod go-w "~/.braidclaw/config.toml"',
  ])
  chmodSync(at.file, 0o644)
  expect(at.found()).toEqual(fine)
})

test('a name that only begins like a loopback address is not one', () => {
  using at = stage()
  const warned = (host: string) =>
    at.validate(`[providers.models.x]\nkind = "openai"\nmodel = "m"\nbase_url = "http://${host}/v1"\n`).warnings.length
  expect(['127.evil.example', '127.0.0.1.evil.example', 'localhost.evil.example', '10.0.0.1'].map(warned)).toEqual([1, 1, 1, 1])
  expect(['127.0.0.1:11434', '127.8.9.10', 'localhost', '[::1]:1'].map(warned)).toEqual([0, 0, 0, 0])
})

test('an unknown tool, and a key that is sent in the open, are warnings', () => {
  using at = stage()
  const provider = '[providers.models.x]\nkind = "openai"\nmodel = "m"\nbase_url = "http://api.example.org/v1"\n'
  expect(at.validate(`[channels.cli]\ntools_allow = ["file_reed"]\n${provider}`)).toEqual({
    problems: [],
    warnings: [
      'channels.cli.tools_allow: "file_reed" is not a tool that is known here, so it allows nothing; did you mean "file_read"?',
      'providers.models.x.base_url: "http://api.example.org/v1" sends the key over the network where others can read it; write https://, or use a tunnel to 127.0.0.1',
    ],
  })
})
