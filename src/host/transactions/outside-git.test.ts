import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Transfer } from '../../security/command/transfer.ts'
import { runOutside } from './outside-git.ts'

const transfer: Transfer = {
  operation: 'fetch',
  remote: 'origin',
  url: 'https://git.example.org/r',
  shown: 'https://git.example.org/r',
  protocol: 'https',
  host: 'git.example.org',
  port: 443,
  listed: true,
  rewrites: false,
  repository: { folder: '/w', git: '/w/.git', common: '/w/.git', inside: true },
  settings: [['remote.braidclaw.fetch', '+refs/heads/*:refs/remotes/origin/*']],
  words: ['fetch', 'braidclaw'],
  after: [],
  says: '',
}

const folder = mkdtempSync(join(tmpdir(), 'braidclaw-outside-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A program in the place of git prints its words and variables. */
async function outside(
  ips: readonly string[],
  allowedDomains: readonly string[] = ['git.example.org'],
  signal = new AbortController().signal,
) {
  const printed: string[] = []
  const executable = join(folder, 'git')
  writeFileSync(executable, '#!/bin/sh\nprintf "%s\\n" "$@"; env\n', { mode: 0o755 })
  const ended = await runOutside({
    transfer,
    executable,
    folder,
    policy: { workspace: '/w', home: '/home/u', allowedDomains },
    env: {
      PATH: '/w/bin:relative:/opt/mine',
      SECRET_KEY: 'x',
      SSH_AUTH_SOCK: '/agent',
      GIT_SSH_COMMAND: 'x',
      GIT_ASKPASS: 'x',
      LD_PRELOAD: '',
    },
    signal,
    onOutput: (chunk) => void printed.push(new TextDecoder().decode(chunk)),
    resolve: async () => [...ips],
  })
  return { ended, printed: printed.join('') }
}

test.each([[['127.0.0.1']], [['93.184.216.34', '10.0.0.1']]])(
  'a public name with the private address %j is not reached, also when allowed_domains lists the name',
  async (ips) => expect((await outside(ips)).ended).toEqual({ ok: false, message: expect.stringContaining('url.private_address') }),
)

test('what was cancelled before does not start', async () => {
  expect((await outside(['93.184.216.34'], [], AbortSignal.abort())).ended).toMatchObject({ ok: false })
})

test('git gets the judged address, no program of the workspace, and of the variables only those it needs', async () => {
  const { ended, printed } = await outside(['93.184.216.34'])
  expect(ended).toMatchObject({ ok: true, code: 0 })
  const lines = printed.split('\n')
  expect(lines.find((line) => line.startsWith('PATH='))).toMatch(/^PATH=\/opt\/mine:\/usr\/local\/sbin:/)
  expect(lines).toContain('GIT_CONFIG_VALUE_3=git.example.org:443:93.184.216.34')
  for (const kept of ['HOME=/home/u', 'SSH_AUTH_SOCK=/agent', 'GIT_TERMINAL_PROMPT=0', 'GIT_CONFIG_VALUE_0=https://git.example.org/r'])
    expect(lines).toContain(kept)
  expect(printed).not.toMatch(/SECRET_KEY|GIT_SSH_COMMAND|GIT_ASKPASS|LD_PRELOAD/)
  for (const word of ['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'protocol.allow=never', 'http.followRedirects=false'])
    expect(lines).toContain(word)
  expect(printed).not.toContain('protocol.http.allow')
})
