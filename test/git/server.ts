/** A real git server on loopback, behind a password that only a credential helper of the user's home knows. */

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shareEtc } from '../../src/sandbox/filesystem/shared-etc.fixture.ts'
import type { Nest } from '../support/cli.ts'
import { home } from '../support/turns.ts'

export const password = 'Pa55-of-the-helper-only'

export type Server = Disposable & {
  readonly url: string
  readonly port: number
  /** One line a request, with the user that signed in. */
  readonly seen: string[]
  /** Runs git in the repository of the server. */
  git(...words: readonly string[]): string
  /** Answers come this much later, in milliseconds. */
  delay: number
}

/** Serves one bare repository, project.git, by git's own http-backend. */
export function gitServer(): Server {
  const root = mkdtempSync(join(tmpdir(), 'braidclaw-server-'))
  const repository = join(root, 'project.git')
  Bun.spawnSync(['git', 'init', '-q', '--bare', '-b', 'main', repository])
  Bun.spawnSync(['git', '-C', repository, 'config', 'http.receivepack', 'true'])
  const seen: string[] = []
  const state = { delay: 0 }
  const listener = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const user = Buffer.from((request.headers.get('authorization') ?? '').replace(/^Basic /, ''), 'base64').toString()
      seen.push(`${request.method} ${pathname}${search} ${user.split(':')[0]}`)
      if (user !== `somebody:${password}`) return new Response('no', { status: 401, headers: { 'www-authenticate': 'Basic realm="git"' } })
      await Bun.sleep(state.delay)
      if (pathname.startsWith('/moved')) return Response.redirect(request.url.replace('/moved', ''), 301)
      return backend(root, request, pathname, search.slice(1))
    },
  })
  return {
    url: `http://127.0.0.1:${listener.port}/project.git`,
    port: listener.port ?? 0,
    seen,
    git: (...words) =>
      Bun.spawnSync(['git', '-C', repository, ...words])
        .stdout.toString()
        .trim(),
    get delay() {
      return state.delay
    },
    set delay(ms) {
      state.delay = ms
    },
    [Symbol.dispose]() {
      listener.stop(true)
      rmSync(root, { recursive: true, force: true })
    },
  }
}

async function backend(root: string, request: Request, path: string, query: string): Promise<Response> {
  const child = Bun.spawn(['git', 'http-backend'], {
    stdin: new Blob([await request.arrayBuffer()]),
    stdout: 'pipe',
    stderr: 'inherit',
    env: {
      PATH: '/usr/bin:/bin',
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REMOTE_USER: 'somebody',
      REQUEST_METHOD: request.method,
      PATH_INFO: path,
      QUERY_STRING: query,
      CONTENT_TYPE: request.headers.get('content-type') ?? '',
      HTTP_CONTENT_ENCODING: request.headers.get('content-encoding') ?? '',
      HTTP_GIT_PROTOCOL: request.headers.get('git-protocol') ?? '',
    },
  })
  const bytes = Buffer.from(await new Response(child.stdout).arrayBuffer())
  const end = bytes.indexOf('\r\n\r\n')
  const lines = bytes.subarray(0, end).toString().split('\r\n')
  const headers = new Headers(lines.map((line): [string, string] => [line.split(': ')[0] ?? '', line.slice(line.indexOf(': ') + 2)]))
  const status = Number(headers.get('status')?.slice(0, 3) ?? 200)
  headers.delete('status')
  return new Response(bytes.subarray(end + 4), { status, headers })
}

export type Project = Nest & {
  /** Runs git as the user, in the workspace; returns what it printed. It cannot reach the server, which waits for this process. */
  git(...words: readonly string[]): string
  /** Makes a commit of one file. */
  commit(name: string, text?: string): void
  /** A file that exists once the credential helper was asked. */
  readonly helped: string
}

/** A home whose workspace is a repository with this server as origin and one commit on main, pushed by the user. */
export function project(server: Server, { listed = true, security = '' } = {}): Project {
  const domains = listed ? 'allowed_domains = ["127.0.0.1"]\n' : ''
  const at = home('', `${domains}allowed_ports = [${server.port}]\n${security}`)
  const helped = join(at.dir, 'helper-was-asked')
  const helper = join(at.dir, 'helper.sh')
  writeFileSync(helper, `#!/bin/sh\ntouch ${helped}\n[ "$1" != get ] || printf 'username=somebody\\npassword=${password}\\n'\n`)
  chmodSync(helper, 0o755)
  writeFileSync(join(at.home, '.gitconfig'), `[user]\n\tname = n\n\temail = e@example.org\n[credential]\n\thelper = ${helper}\n`)
  shareEtc(join(at.home, '.braidclaw'), { name: 'n', email: 'e@example.org' })
  const git = (...words: readonly string[]) => {
    const ended = Bun.spawnSync(['git', ...words], { cwd: at.workspace, env: { ...at.env, GIT_TERMINAL_PROMPT: '0' }, stderr: 'pipe' })
    return `${ended.stdout}${ended.exitCode === 0 ? '' : ended.stderr}`.trim()
  }
  const commit = (name: string, text = name) => {
    at.file(name, `${text}\n`)
    git('add', name)
    git('commit', '-qm', name)
  }
  git('init', '-q', '-b', 'main')
  git('remote', 'add', 'origin', server.git('rev-parse', '--absolute-git-dir'))
  commit('one')
  git('push', '-q', '-f', '-u', 'origin', 'main')
  git('remote', 'set-url', 'origin', server.url)
  return { ...at, git, commit, helped, [Symbol.dispose]: () => at[Symbol.dispose]() }
}

/** Somebody else's commit on the server. */
export function elsewhere(server: Server, name: string, branch = 'main', more: readonly string[] = []): string {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-elsewhere-'))
  const root = server.git('rev-parse', '--absolute-git-dir')
  const script = `git clone -q ${root} . && git checkout -q -B ${branch} && echo ${name} > ${name} && git add . && git -c user.name=x -c user.email=x commit -qm ${name} && ${more.map((line) => `${line} && `).join('')}git push -q --tags origin ${branch} && git rev-parse HEAD`
  const { stdout } = Bun.spawnSync(['sh', '-c', script], { cwd: folder })
  rmSync(folder, { recursive: true, force: true })
  return stdout.toString().trim()
}
