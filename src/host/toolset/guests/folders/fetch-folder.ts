/** Fetches a plugin or skill from a git server or an npm registry into an empty folder. It runs nothing of it and follows no redirect to another host. */

import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { isInside } from '../../../../discovery/text-files.ts'
import { attempt } from '../../../../kit/errors.ts'
import { isObject, parseJson } from '../../../../kit/json.ts'
import { cut, quote, visible } from '../../../../kit/text.ts'
import { ownRemote, type Transfer } from '../../../../security/command/transfer.ts'
import type { Policy } from '../../../../security/policy.ts'
import { judgeConnection } from '../../../../security/targets/address.ts'
import { isAllowed, judgeUrl } from '../../../../security/targets/url.ts'
import { cleanEnvironment, type SpawnResult, spawnPlain } from '../../../../tools/process.ts'
import { createGuardedFetch } from '../../../../workspace/net/guarded.ts'
import type { Setup } from '../../../api.ts'
import { FailureError } from '../../../failure.ts'
import { policyOf, resolveExecutable } from '../../../setup/effective-policy.ts'
import { runOutside } from '../../../transactions/outside-git.ts'
import { unpackTar } from './unpack-tar.ts'

const mostBytes = 64 * 1024 * 1024
const timeoutMs = 120_000

export function isRemote(source: string): boolean {
  return /^(?:git\+|npm:)/.test(source)
}

/**
 * `to` is an empty folder; git works in another one beside it. @returns the folder that `source` names after a colon behind its version
 * (`git+URL#REF:FOLDER`), or else `to`. @throws FailureError
 */
export async function fetchFolder(setup: Setup, source: string, to: string): Promise<string> {
  const [, address = source, inner = '.'] = /^(git\+[^#]*#[^:]*|npm:[^:]*):(.+)$/.exec(source) ?? []
  const tar = address.startsWith('npm:') ? await fromNpm(setup, address) : await fromGit(setup, address, `${to}.git`)
  mkdirSync(to, { recursive: true, mode: 0o700 })
  unpackTar(tar, to)
  const folder = attempt(() => realpathSync(join(to, inner)))
  if (folder !== undefined && isInside(realpathSync(to), folder)) return folder
  throw fail(source, `it has no folder ${quote(inner)}`)
}

function fail(source: string, why: string): FailureError {
  return new FailureError('error', `${visible(source)}: ${why}`)
}

async function fromNpm(setup: Setup, source: string): Promise<Buffer> {
  const [, name, version = 'latest'] = /^npm:((?:@[\w.-]+\/)?[\w.-]+)(?:@(\d[\w.+-]*))?$/.exec(source) ?? []
  if (name === undefined) throw fail(source, 'is not npm:NAME, or npm:NAME@VERSION with an exact version, such as npm:my-plugin@1.2.0')
  const policy = policyOf(setup.config, setup.paths, setup.context.env)
  const registry = URL.parse(setup.context.env.npm_config_registry || 'https://registry.npmjs.org/')
  if (registry === null) throw fail(source, 'npm_config_registry is not an address')
  const { get } = createGuardedFetch({
    judgeUrl({ url, method }) {
      if (URL.parse(url)?.origin === registry.origin) return judgeUrl({ url, method, policy })
      return {
        ok: false,
        rule: 'url.redirect',
        reason: `${quote(url)} is not at ${registry.origin}, and an installation goes to no other host`,
      }
    },
    judgeAddress: ({ host, ip }) => judgeConnection({ host, ip, allowedDomains: policy.allowedDomains }),
    maxBytes: mostBytes,
    timeoutMs,
    binary: true,
  })
  const read = async (url: string) => {
    const found = await get(url)
    if (!found.ok) throw fail(source, found.message)
    if (found.status !== 200) throw fail(source, `${url} answered ${found.status}`)
    if (found.truncated) throw fail(source, `${url} has more than ${mostBytes} bytes`)
    return Buffer.from(found.body, 'latin1')
  }
  const facts = parseJson((await read(new URL(`${name}/${version}`, registry).href)).toString())
  const dist = isObject(facts) && isObject(facts.dist) ? facts.dist : {}
  if (typeof dist.tarball !== 'string' || typeof dist.integrity !== 'string')
    throw fail(source, 'the registry names no archive with a digest')
  const archive = await read(dist.tarball)
  const digest = `sha512-${new Bun.CryptoHasher('sha512').update(archive).digest('base64')}`
  if (!dist.integrity.split(' ').includes(digest)) throw fail(source, 'the archive is not the one whose digest the registry names')
  const tar = attempt(() => gunzipSync(archive, { maxOutputLength: 4 * mostBytes }))
  if (tar === undefined) throw fail(source, 'the archive is damaged, or too long when it is unpacked')
  return tar
}

/** Fetches one commit by the rules of git outside the sandbox, into a repository of its own, and lets git pack its files. */
async function fromGit(setup: Setup, source: string, folder: string): Promise<Buffer> {
  const policy = policyOf(setup.config, setup.paths, setup.context.env)
  const transfer = transferOf(source, policy, folder)
  const git = resolveExecutable('git')
  if (git === undefined) throw fail(source, 'git is not installed')
  const printed = { stdout: [] as Uint8Array[], stderr: '', bytes: 0 }
  const signal = AbortSignal.timeout(timeoutMs)
  const onOutput = (chunk: Uint8Array, from: 'stdout' | 'stderr') => {
    printed.bytes += chunk.length
    if (from === 'stderr') printed.stderr = (printed.stderr + new TextDecoder().decode(chunk)).slice(-2_000)
    else if (printed.bytes <= 4 * mostBytes) printed.stdout.push(chunk.slice())
  }
  const assertDone = (ended: SpawnResult) => {
    if (ended.ok && ended.code === 0) return
    const redirected = /returned error: 30\d/.test(printed.stderr) ? 'the server redirects to another address, which is not followed; ' : ''
    const said = ended.ok ? visible(cut(printed.stderr.trim(), 300)) : ended.message
    throw fail(source, redirected + (signal.aborted ? `no answer within ${timeoutMs / 1_000} s` : said))
  }
  const env = { ...cleanEnvironment({ home: folder }), GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_DIR: folder }
  const run = async (...words: readonly string[]) =>
    assertDone(await spawnPlain({ argv: [git, ...words], cwd: folder, env, signal, onOutput }))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  await run('init', '--quiet', '--bare', '--template=')
  assertDone(await runOutside({ transfer, executable: git, folder, policy, env: setup.context.env, signal, onOutput }))
  printed.stdout.length = 0
  await run('archive', '--format=tar', '--prefix=fetched/', 'FETCH_HEAD')
  if (printed.bytes > 4 * mostBytes) throw fail(source, `it has more than ${4 * mostBytes} bytes`)
  return Buffer.concat(printed.stdout)
}

function transferOf(source: string, { allowedDomains }: Pick<Policy, 'allowedDomains'>, folder: string): Transfer {
  const url = URL.parse(source.slice('git+'.length))
  const protocol = (['https', 'http', 'ssh'] as const).find((one) => `${one}:` === url?.protocol)
  const ref = url?.hash.slice(1) || 'HEAD'
  if (url === null || protocol === undefined || url.password !== '' || !/^\w[\w./-]*$/.test(ref) || ref.includes('..'))
    throw fail(source, 'is not an address such as git+https://example.org/plugin.git#v1.0, without a password')
  url.hash = ''
  if (protocol === 'http' && !isAllowed(url.hostname, allowedDomains))
    throw fail(source, 'http is not encrypted; use https, or list the host in security.allowed_domains')
  return {
    operation: 'fetch',
    remote: ownRemote,
    url: url.href,
    shown: url.href,
    protocol,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port) || { https: 443, http: 80, ssh: 22 }[protocol],
    listed: true,
    rewrites: false,
    repository: { folder, git: folder, common: folder, inside: false },
    settings: [],
    words: ['fetch', '--quiet', '--depth=1', '--no-tags', ownRemote, ref],
    after: [],
    says: '',
  }
}
