/** Push, fetch and pull reach a server outside the sandbox: only after a yes, with nothing of the repository's own running, and on the record. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { alone, call, turn } from '../support/turns.ts'
import { gitServer, type Project, password, project, type Server } from './server.ts'

const real = test.if(needs('bwrap', 'git'))
const inDepth = isDeep ? real : () => {}

const state: { server?: Server } = {}
beforeAll(() => {
  state.server = gitServer()
})
afterAll(() => state.server?.[Symbol.dispose]())
const server = () => state.server ?? gitServer()

const shell = (at: Project, command: string, ...args: readonly string[]) =>
  at.run(['tool', 'run', 'shell', ...args, '--json', JSON.stringify({ command })], { timeoutMs: 20_000 })
const full = (at: Project, command: string) => shell(at, command, '--autonomy', 'full')
const says = { text: 'It said: {{last_tool_result}}' }
const pushed = () => server().git('rev-parse', 'main')
const reached = async (run: () => Promise<unknown>) => {
  const before = server().seen.length
  await run()
  return server().seen.slice(before)
}

describe('nobody to ask', () => {
  real(
    'a push is not sent, supervised and with --auto, and the waiting question names host, remote, branch and commit',
    async () => {
      using at = project(server())
      at.commit('unsent')
      const before = pushed()
      for (const args of [[], ['--auto']]) {
        const { code } = await turn(at, [call('shell', { command: 'git push origin main' }), says], args, { through: alone })
        expect([args, code]).toEqual([args, 4])
      }
      expect([pushed(), existsSync(at.helped)]).toEqual([before, false])
      const { stdout } = await at.run(['approvals', 'list'])
      expect(stdout).toContain(`git push with "origin" (${server().url}), outside the sandbox`)
      expect(stdout).toContain(`sends main (${at.git('rev-parse', 'HEAD').slice(0, 10)})`)
    },
    120_000,
  )

  real(
    'a push that replaces history or deletes a branch is not sent in full either',
    async () => {
      using at = project(server())
      const before = pushed()
      at.git('commit', '-q', '--amend', '-m', 'other')
      const more = ['git push --force-with-lease', 'git push origin +main', 'git push -d origin main']
      for (const command of ['git push -f', 'git push origin :main', ...(isDeep ? more : [])]) {
        const { code, stderr } = await full(at, command)
        expect([command, code]).toEqual([command, 4])
        expect(stderr).toMatch(/REPLACES the history of main|DELETES main there/)
      }
      expect(pushed()).toBe(before)
    },
    120_000,
  )

  inDepth(
    'after foreign text and private data a push to a listed host is not sent in full either; after one of them it is',
    async () => {
      using at = project(server())
      await turn(at, [{ text: 'The code word is gold.' }])
      const remember = call('memory_search', { query: 'code word' })
      const command = call('shell', { command: 'git push' })
      const foreign = call('shell', { command: 'git fetch' })
      at.commit('gold')
      const before = pushed()
      const both = await turn(at, [foreign, remember, command, says], ['--autonomy', 'full'], { through: alone })
      expect([both.code, pushed()]).toEqual([4, before])
      expect((await turn(at, [remember, command, says], ['--autonomy', 'full'], { through: alone })).code).toBe(0)
      expect(pushed()).toBe(at.git('rev-parse', 'HEAD'))
    },
    120_000,
  )
})

describe('refused', () => {
  real(
    'a no at the terminal reaches no server and asks no credential helper',
    async () => {
      using at = project(server())
      at.commit('unwanted')
      const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('shell', { command: 'git push' }), says]) }
      const seen = await reached(() => at.terminal(['agent', '-m', 'go'], [['[y/N', 'n\r']], { env, timeoutMs: 20_000 }))
      expect([seen, existsSync(at.helped)]).toEqual([[], false])
    },
    120_000,
  )

  real(
    'settings of the repository that name a program or another server are named, and none of them runs',
    async () => {
      using at = project(server())
      const canary = join(at.dir, 'ran')
      const run = `touch ${canary}`
      const more = [['credential.helper', `!${run}`]] as const
      for (const [key, value] of [
        ['core.sshCommand', run],
        ['url.http://evil.example/.insteadOf', 'http://127.0.0.1'],
        ...(isDeep ? more : []),
      ] as const) {
        at.git('config', key, value)
        for (const command of ['git push origin main', ...(isDeep ? ['git fetch'] : [])]) {
          const seen = await reached(async () => {
            const { code, stderr } = await full(at, command)
            expect([key, code, stderr]).toEqual([key, 3, expect.stringContaining('git.settings')])
            expect(stderr.toLowerCase()).toContain(key.toLowerCase())
          })
          expect(seen).toEqual([])
        }
        at.git('config', '--unset', key)
      }
      expect(existsSync(canary)).toBe(false)
    },
    120_000,
  )

  real(
    'hooks, monitors, filters and pagers of the repository do not run outside; the hook of a push is named',
    async () => {
      using at = project(server())
      const canary = join(at.dir, 'ran')
      const program = join(at.dir, 'trap.sh')
      writeFileSync(program, `#!/bin/sh\necho "$0" >> ${canary}\ncat\n`)
      chmodSync(program, 0o755)
      at.commit('trapped')
      for (const hook of ['pre-push', 'reference-transaction', 'post-merge', 'pre-auto-gc', 'push-to-checkout'])
        writeFileSync(join(at.workspace, '.git/hooks', hook), `#!/bin/sh\necho ${hook} >> ${canary}\n`, { mode: 0o755 })
      for (const key of ['core.fsmonitor', 'core.pager', 'core.editor', 'diff.external', 'alias.push', 'filter.x.clean', 'gpg.program'])
        at.git('config', key, key === 'alias.push' ? `!${program}` : program)
      rmSync(canary, { force: true })
      const { code, stdout } = await full(at, 'git push')
      expect([code, stdout]).toEqual([0, expect.stringContaining('the git hook pre-push of ".git/hooks" did not run')])
      expect((await full(at, 'git fetch --prune')).code).toBe(0)
      expect(existsSync(canary)).toBe(false)
      expect(pushed()).toBe(at.git('rev-parse', 'HEAD'))
      at.git('config', '--global', 'core.hooksPath', join(at.dir, 'hooks'))
      at.git('commit', '-q', '--allow-empty', '-m', 'more')
      rmSync(canary, { force: true })
      mkdirSync(join(at.dir, 'hooks'))
      writeFileSync(join(at.dir, 'hooks/pre-push'), `#!/bin/sh\ntouch ${canary}\n`, { mode: 0o755 })
      expect((await full(at, 'git push')).stdout).toContain('the git hook pre-push of')
      expect(existsSync(canary)).toBe(false)
    },
    120_000,
  )

  real(
    'plain http to a host that is not listed, a name of the local network, and a redirect',
    async () => {
      using unlisted = project(server(), { listed: false })
      expect((await full(unlisted, 'git fetch')).stderr).toContain('git.remote')
      using at = project(server())
      const seen = await reached(async () => {
        const more = ['git@nas:x.git', 'https://10.0.0.1/x.git']
        for (const url of ['https://printer.local/x.git', 'ssh://git@192.168.0.1/x.git', ...(isDeep ? more : [])]) {
          at.git('remote', 'set-url', 'origin', url)
          expect([url, (await full(at, 'git push origin main')).stderr]).toEqual([
            url,
            expect.stringMatching(/url\.(local_name|private_address)/),
          ])
        }
      })
      expect(seen).toEqual([])
      at.git('remote', 'set-url', 'origin', server().url.replace('/project', '/moved/project'))
      const followed = await reached(async () => {
        const { code, stderr } = await full(at, 'git fetch')
        expect([code, stderr]).toEqual([1, expect.stringContaining('which is not followed')])
      })
      expect(followed.filter((line) => line.startsWith('GET /project.git'))).toEqual([])
    },
    120_000,
  )

  real(
    'a dry run reaches no server',
    async () => {
      using at = project(server())
      at.commit('dry')
      const seen = await reached(async () => {
        const { stdout, stderr } = await shell(at, 'git push', '--autonomy', 'full', '--dry-run')
        expect(stdout + stderr).toContain('a dry run reaches no git server')
      })
      expect(seen).toEqual([])
    },
    120_000,
  )
})

/** Nothing below the home holds the password, and neither does what was printed. */
function isNowhere(at: Project, ...texts: readonly string[]): void {
  expect(texts.filter((text) => text.includes(password))).toEqual([])
  const found = Bun.spawnSync(['grep', '-rlaF', password, join(at.home, '.braidclaw'), at.workspace]).stdout.toString()
  expect(found).toBe('')
}

describe('after a yes', () => {
  real(
    "a push arrives with the user's credentials, which nobody else sees; both ids are told, and the receipts are valid",
    async () => {
      using at = project(server())
      const before = pushed()
      at.commit('sent')
      const head = at.git('rev-parse', 'HEAD')
      const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([call('shell', { command: 'git push -u origin main' }), says]) }
      const { stdout } = await at.terminal(['agent', '-m', 'go'], [['[y/N', 'y\r']], { env, timeoutMs: 20_000 })
      expect(stdout.replace(/\s+/g, '')).toContain(`refs/remotes/origin/main:${before}→${head}`)
      expect([pushed(), existsSync(at.helped), at.git('status', '-sb')]).toEqual([head, true, '## main...origin/main'])
      isNowhere(at, stdout)
      const verified = await at.run(['receipt', 'verify', '--deep'])
      expect([verified.code, verified.stderr]).toEqual([0, ''])
      expect(readdirSync(join(at.home, '.braidclaw/run')).filter((name) => name.includes('-git-'))).toEqual([])
    },
    120_000,
  )

  inDepth(
    "the address that the user's settings put in its place is the one that is reached, once; its password is not shown",
    async () => {
      using at = project(server())
      const address = `http://somebody:${password}@127.0.0.1:${server().port}/`
      const more = `[credential]\n\thelper =\n[url "${address}"]\n\tinsteadOf = https://git.example.org/\n[url "https://evil.example/"]\n\tinsteadOf = http://somebody\n\tpushInsteadOf = http://somebody\n[push]\n\tfollowTags = true\n`
      writeFileSync(join(at.home, '.gitconfig'), `[user]\n\tname = n\n\temail = e\n${more}`)
      at.git('remote', 'set-url', 'origin', 'https://git.example.org/project.git')
      at.commit('in place')
      at.git('tag', '-a', '-m', 'not asked about', 'unasked')
      const { code, stdout, stderr } = await full(at, 'git push')
      expect([code, stdout]).toEqual([0, expect.stringContaining(`"origin": ${server().url}`)])
      expect((await full(at, 'git fetch')).code).toBe(0)
      expect([pushed(), server().git('tag', '-l', 'unasked'), existsSync(at.helped)]).toEqual([at.git('rev-parse', 'HEAD'), '', false])
      isNowhere(at, stdout, stderr)
    },
    120_000,
  )

  inDepth(
    'ssh is the ssh of the user, never a program of the workspace',
    async () => {
      using at = project(server(), { security: '' })
      const canary = join(at.dir, 'ran')
      mkdirSync(join(at.workspace, 'bin'))
      mkdirSync(join(at.dir, 'bin'))
      writeFileSync(join(at.workspace, 'bin/ssh'), `#!/bin/sh\ntouch ${canary}\n`, { mode: 0o755 })
      writeFileSync(join(at.dir, 'bin/ssh'), '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n', { mode: 0o755 })
      at.config(`${await Bun.file(join(at.home, '.braidclaw/config.toml')).text()}`.replace('["127.0.0.1"]', '["localhost"]'))
      at.git('remote', 'set-url', 'origin', `git@localhost:${server().git('rev-parse', '--absolute-git-dir')}`)
      at.commit('by ssh')
      const env = { PATH: `${at.workspace}/bin:bin:${at.dir}/bin:${at.env.PATH}` }
      const { code, stdout, stderr } = await at.run(['tool', 'run', 'shell', '--autonomy', 'full', '--json', '{"command":"git push"}'], {
        env,
        timeoutMs: 20_000,
      })
      expect([code, stderr, stdout]).toEqual([0, '', expect.stringContaining('git@localhost:')])
      expect([pushed(), existsSync(canary)]).toEqual([at.git('rev-parse', 'HEAD'), false])
    },
    120_000,
  )
})
