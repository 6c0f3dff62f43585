/** Plugins from a git server and an npm registry on loopback: what is installed, and what is refused with a sentence. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, existsSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type TarMember, tarOf } from '../../src/host/toolset/guests/folders/tar.fixture.ts'
import type { Nest } from '../support/cli.ts'
import { echoManifest } from '../support/echo-plugin.ts'
import { needs } from '../support/needs.ts'
import { home } from '../support/turns.ts'
import { gitServer, type Project, project, type Server } from './server.ts'

const installed = (at: Nest) => {
  const folder = join(at.home, '.braidclaw/plugins/echo-plugin')
  return existsSync(folder) ? readdirSync(folder).toSorted() : []
}
const echo = (at: Nest) => at.run(['tool', 'run', 'echo', '--auto', '--sandbox', 'none', '--json', '{"a":1}'])

const real = test.if(needs('git'))
const state: { server?: Server } = {}
beforeAll(() => {
  state.server = gitServer()
})
afterAll(() => state.server?.[Symbol.dispose]())
const server = () => state.server ?? gitServer()

function push(at: Project, version: string): void {
  at.file('manifest.toml', echoManifest(version))
  at.file('echo-plugin', '#!/bin/sh\ncat\n')
  chmodSync(join(at.workspace, 'echo-plugin'), 0o755)
  at.git('add', '-A')
  at.git('commit', '-qm', version)
  at.git('push', '-q', '-f', server().git('rev-parse', '--absolute-git-dir'), 'main')
}

real('git: one commit is installed without its history, an update shows what changed, and nothing runs before a yes', async () => {
  using at = project(server())
  push(at, '0.1.0')
  const source = `git+${server().url}#main`
  const made = await at.run(['plugin', 'install', source, '--yes'])
  expect([made.code, made.stderr]).toEqual([0, ''])
  expect(installed(at)).toEqual(['echo-plugin', 'manifest.toml', 'one'])
  expect((await echo(at)).stdout).toBe('{"a":1}\n')
  expect(JSON.parse((await at.run(['plugin', 'show', 'echo-plugin', '--json'])).stdout).source).toBe(source)
  push(at, '0.2.0')
  const update = await at.run(['plugin', 'update', 'echo-plugin', '--yes'])
  expect(update.stdout).toContain('+version = "0.2.0"')
})

real('git: links that lead out, redirects, passwords, odd references and unlisted http are refused with a sentence', async () => {
  using at = project(server())
  push(at, '0.1.0')
  symlinkSync('/etc/passwd', join(at.workspace, 'secret'))
  push(at, '0.1.1')
  const why = async (source: string) => {
    const { code, stderr } = await at.run(['plugin', 'install', source, '--yes'])
    expect([code, installed(at)]).toEqual([1, []])
    return stderr
  }
  expect(await why(`git+${server().url}`)).toContain('the link "secret" leads to "/etc/passwd", out of its folder')
  expect(await why(`git+${server().url.replace('/project', '/moved/project')}`)).toContain(
    'the server redirects to another address, which is not followed',
  )
  expect(await why(`git+${server().url.replace('//', '//u:p@')}`)).toContain('without a password')
  for (const ref of ['--upload-pack=touch', 'a..b', '$(id)']) expect(await why(`git+${server().url}#${ref}`)).toContain('is not an address')
  expect(await why('git+file:///etc')).toContain('is not an address')
  expect(await why(`git+http://example.org/x.git`)).toContain('http is not encrypted')
  expect(await why(`git+${server().url}#nowhere`)).toContain('nowhere')
})

type Registry = {
  readonly members: readonly TarMember[]
  readonly integrity?: string
  readonly redirect?: string
  readonly tarball?: string
}

/** A registry with one package; `seen` are the paths that were asked for. */
function registry({ members, integrity, redirect, tarball }: Registry) {
  const archive = gzipSync(tarOf(members))
  const digest = `sha512-${new Bun.CryptoHasher('sha512').update(archive).digest('base64')}`
  const seen: string[] = []
  const listener = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname, origin } = new URL(request.url)
      seen.push(pathname)
      if (pathname.endsWith('.tgz')) return redirect ? Response.redirect(redirect, 302) : new Response(archive)
      if (pathname !== '/@me/echo/1.0.0') return new Response('no', { status: 404 })
      return Response.json({ dist: { tarball: tarball ?? `${origin}/echo.tgz`, integrity: integrity ?? digest } })
    },
  })
  const at = home()
  at.config(`[security]\nallowed_domains = ["127.0.0.1"]\nallowed_ports = [${listener.port}]\n`)
  const env = { npm_config_registry: `http://127.0.0.1:${listener.port}/` }
  const install = (source = 'npm:@me/echo@1.0.0') => at.run(['plugin', 'install', source, '--yes'], { env })
  const close = () => {
    void listener.stop(true)
    at[Symbol.dispose]()
  }
  return { at, seen, install, [Symbol.dispose]: close }
}

const good: readonly TarMember[] = [
  { name: 'package/manifest.toml', text: echoManifest('1.0.0') },
  { name: 'package/echo-plugin', text: '#!/bin/sh\ncat\n', mode: 0o755 },
]

test('npm: a package is read without running its scripts', async () => {
  const scripts = { preinstall: 'touch ran', install: 'touch ran', postinstall: 'touch ran', prepare: 'touch ran' }
  using on = registry({ members: [...good, { name: 'package/package.json', text: JSON.stringify({ name: '@me/echo', scripts }) }] })
  const { code, stderr } = await on.install()
  expect([code, stderr, installed(on.at)]).toEqual([0, '', ['echo-plugin', 'manifest.toml', 'package.json']])
  expect(existsSync(join(on.at.workspace, 'ran'))).toBe(false)
  expect((await echo(on.at)).stdout).toBe('{"a":1}\n')
})

test.each([
  [
    'another archive than the registry names',
    { members: good, integrity: 'sha512-AAAA' },
    'is not the one whose digest the registry names',
  ],
  ['a redirect to another host', { members: good, redirect: 'http://localhost:1/x.tgz' }, 'an installation goes to no other host'],
  ['an archive at another host', { members: good, tarball: 'http://localhost:1/x.tgz' }, 'an installation goes to no other host'],
  ['a link that leads out', { members: [...good, { name: 'package/l', type: '2', link: '/etc/passwd' }] }, 'out of its folder'],
  ['a set-user-ID program', { members: [...good, { name: 'package/su', mode: 0o6755 }] }, 'is a set-user-ID or set-group-ID program'],
  [
    '100,000 files',
    { members: [...good, ...Array.from({ length: 100_000 }, (_, n) => ({ name: `package/${n}` }))] },
    'more than 5,000 files',
  ],
  ['no manifest', { members: [{ name: 'package/index.js' }] }, 'it has no manifest.toml'],
] as const)('npm: %s is refused, and nothing is installed', async (_what, told, says) => {
  using on = registry(told)
  const { code, stderr } = await on.install()
  expect([code, installed(on.at)]).toEqual([1, []])
  expect(stderr).toContain(says)
})

test('npm: a version that is not exact, and a package that is not there', async () => {
  using on = registry({ members: good })
  for (const source of ['npm:echo@latest', 'npm:echo@^1.0.0', 'npm:../../etc@1', 'npm:a b@1.0.0'])
    expect((await on.install(source)).stderr).toContain('is not npm:NAME, or npm:NAME@VERSION with an exact version')
  expect(on.seen).toEqual([])
  expect((await on.install('npm:echo@2.0.0')).stderr).toContain('answered 404')
})
