/**
 * Shows commands few of the system's files: a small copy of /etc with what programs need, without the users, services and keys of this
 * machine; and finds the files that only this user may read, so that a sandbox hides them from commands of the same user.
 */

import {
  accessSync,
  appendFileSync,
  chmodSync,
  constants,
  copyFileSync,
  type Dirent,
  lstatSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { attempt, succeeds } from '../../kit/errors.ts'
import { entriesIn, namesIn } from '../../kit/proc.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { GitUser } from '../contract.ts'

/** Files and folders that are copied, where they exist and everybody may read them. Certificates are public, private keys are not copied. */
const copied = (
  'alternatives alpine-release bash.bashrc ca-certificates crypto-policies debian_version dotnet ethertypes fonts gai.conf gitconfig glvnd ' +
  'host.conf inputrc java-* ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf localtime login.defs lsb-release magic magic.mime ' +
  'mailcap maven mime.types networks npmrc OpenCL os-release papersize perl pip.conf pki/ca-trust pki/tls/cert.pem pki/tls/certs ' +
  'pki/tls/openssl.cnf profile profile.d protocols python* R redhat-release rpc services sgml shells ssl/cert.pem ssl/certs ssl/openssl.cnf ' +
  'static terminfo texmf timezone vim wgetrc xml'
).split(' ')

/** The package managers change these files whenever they change something in /etc. */
const packages = ['/var/lib/dpkg/status', '/var/lib/rpm', '/var/lib/pacman/local', '/lib/apk/db/installed', '/nix/var/nix/profiles/system']

const MOST_BYTES = 4 * 2 ** 20
const MOST_ENTRIES = 5_000
/** An older program of ours may still use one of the last folders. */
const KEPT = 4
const VERSION = '1'

type User = { readonly uid: number; readonly gid: number; readonly name: string; readonly home: string }
type Preparing = { readonly run: string; readonly user: User; readonly gitUser?: GitUser; readonly root?: string }

/**
 * Makes the folder once and again after a change of the system.
 * @returns its path, or undefined where it cannot be made
 */
export function prepareEtc({ run, user, gitUser = {}, root = '/etc' }: Preparing): string | undefined {
  const there = namesIn(root)
  const names = copied.flatMap((name) => (name.endsWith('*') ? there.filter((one) => one.startsWith(name.slice(0, -1))) : [name]))
  const path = join(
    run,
    `etc-${sha256(JSON.stringify([VERSION, user, gitUser, root, names.map((name) => stamp(join(root, name))), packages.map(stamp)])).slice(0, 16)}`,
  )
  if (statOf(path) !== undefined) return path
  const unfinished = `${path}.${process.pid}`
  try {
    rmSync(unfinished, { recursive: true, force: true })
    mkdirSync(unfinished, { recursive: true })
    const counter = { left: MOST_ENTRIES }
    for (const name of names) copy({ from: join(root, name), to: join(unfinished, name), counter })
    for (const [name, text] of Object.entries(written(user))) writeFileSync(join(unfinished, name), text)
    for (const [kind, text] of Object.entries(gitUser.files ?? {})) writeFileSync(join(unfinished, `git-${kind}`), text)
    if (Object.keys(gitUser).length > 0) appendFileSync(join(unfinished, 'gitconfig'), settingsText(gitUser))
    renameSync(unfinished, path)
    removeOld(run)
    return path
  } catch {
    rmSync(unfinished, { recursive: true, force: true })
    // Another process of ours may have been quicker.
    return statOf(path) === undefined ? undefined : path
  }
}

function stamp(path: string): string {
  const stat = statOf(path)
  return stat === undefined ? '' : `${stat.ino} ${stat.mtimeMs} ${stat.size}`
}

function copy({ from, to, counter }: { readonly from: string; readonly to: string; readonly counter: { left: number } }): void {
  const stat = statOf(from)
  if (stat === undefined || --counter.left < 0) return
  mkdirSync(dirname(to), { recursive: true })
  if (stat.isSymbolicLink()) symlinkSync(readlinkSync(from), to)
  else if (stat.isDirectory() && (stat.mode & 0o005) === 0o005) {
    mkdirSync(to)
    for (const name of namesIn(from)) copy({ from: join(from, name), to: join(to, name), counter })
  } else if (stat.isFile() && (stat.mode & 0o004) !== 0 && stat.size <= MOST_BYTES) {
    copyFileSync(from, to)
    chmodSync(to, (stat.mode & 0o555) | 0o200)
  }
}

function written({ uid, gid, name, home }: User): { readonly [name: string]: string } {
  const people = [`root:x:0:0:root:/root:/bin/sh`, `nobody:x:65534:65534:nobody:/nonexistent:/bin/sh`]
  const groups = ['root:x:0:', 'nogroup:x:65534:']
  return {
    passwd: lines([`${name}:x:${uid}:${gid}:${name}:${home}:/bin/sh`, ...people.filter((line) => !line.includes(`:x:${uid}:`))]),
    group: lines([`${gid === 65534 ? 'nogroup' : name}:x:${gid}:`, ...groups.filter((line) => !line.includes(`:x:${gid}:`))]),
    // Plain files only: other sources would ask a service that no command can reach.
    'nsswitch.conf': lines(['passwd: files', 'group: files', 'hosts: files dns', 'services: files', 'protocols: files', 'networks: files']),
    hosts: lines(['127.0.0.1 localhost sandbox', '::1 localhost']),
    hostname: lines(['sandbox']),
    // No name server can be reached: commands with a network ask our proxy for names.
    'resolv.conf': lines(['options timeout:1 attempts:1']),
  }
}

function settingsText({ name, email, settings, files = {} }: GitUser): string {
  const keys = { ignore: 'core.excludesfile', attributes: 'core.attributesfile' }
  const paths = Object.entries(keys).map(([kind, key]) => [key, kind in files ? `/etc/git-${kind}` : undefined] as const)
  const all = [['user.name', name], ['user.email', email], ...Object.entries(settings ?? {}), ...paths] as const
  const values = all.flatMap(([key = '', value]) => {
    const [section, variable] = key.split('.')
    return value === undefined ? [] : [`[${section}]`, `\t${variable} = "${value.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`]
  })
  return lines(['', ...values])
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join('')
}

function removeOld(run: string): void {
  const all = namesIn(run).filter((name) => /^etc-[\da-f]{16}$/.test(name))
  const newest = all.toSorted((a, b) => statSync(join(run, b)).mtimeMs - statSync(join(run, a)).mtimeMs)
  for (const name of newest.slice(KEPT)) rmSync(join(run, name), { recursive: true, force: true })
}

function statOf(path: string): Stats | undefined {
  return attempt(() => lstatSync(path, { throwIfNoEntry: false }))
}

const DEPTH = 6
const ENTRIES = 20_000

/**
 * @returns the topmost folders and the single files below `root` that we may read and other users may not. It skips empty files, which hold
 * no secret.
 */
export function privateBelow(root: string, depth = DEPTH): { readonly files: readonly string[]; readonly folders: readonly string[] } {
  const files: string[] = []
  const folders: string[] = []
  const queue = [{ folder: root, depth }]
  let seen = 0
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    for (const entry of entriesIn(at.folder)) {
      const path = join(at.folder, entry.name)
      if (++seen > ENTRIES) return { files, folders: [...folders, ...queue.map(({ folder }) => folder), at.folder] }
      if (entry.isSymbolicLink()) continue
      const kind = judge(path, entry)
      if (kind === 'private') (entry.isDirectory() ? folders : files).push(path)
      else if (kind === 'open' && entry.isDirectory() && at.depth > 1) queue.push({ folder: path, depth: at.depth - 1 })
    }
  }
  return { files, folders }
}

function judge(path: string, entry: Dirent): 'private' | 'open' | 'closed' {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return 'closed'
  const needed = entry.isDirectory() ? 0o005 : 0o004
  if ((stat.mode & needed) === needed) return 'open'
  return (entry.isDirectory() || stat.size > 0) && succeeds(() => accessSync(path, constants.R_OK)) ? 'private' : 'closed'
}
