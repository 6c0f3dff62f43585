/** Packs what is published, and installs it where neither bun nor a registry can be reached and install scripts do not run. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Platform, platformName, platforms } from '../../../scripts/packages/entries.ts'
import { packAll, stagePlatform } from '../../../scripts/packages/stage.ts'
import { isDeep } from '../../support/tier.ts'

const root = join(import.meta.dir, '../../..')

export const here = `${process.platform}-${process.arch}`
export const { version }: { readonly version: string } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

type PublishedManifest = {
  readonly [key: string]: unknown
  readonly version: string
  readonly exports: { readonly [subpath: string]: string | { readonly [condition: string]: string } }
  readonly dependencies: { readonly [name: string]: string }
}

export type Packages = Disposable & {
  readonly folder: string
  /** The tarball of braidclaw. */
  readonly main: string
  /** What npm installs: both packages, and the packages that they depend on. */
  readonly tarballs: readonly string[]
  /** The manifest of the package braidclaw. */
  readonly manifest: PublishedManifest
}

export async function packages(): Promise<Packages> {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-published-'))
  const platform = platforms.find((one) => platformName(one) === here)
  if (!platform) throw new Error(`nothing is published for ${here}`)
  const program = process.env.BRAIDCLAW_TEST_BINARY || undefined
  const [{ tarball: main } = { tarball: '' }, packed] = await packAll(folder, { chosen: isDeep ? [platform] : [], program })
  const own = packed?.tarball ?? (await uncompressed(folder, { platform, program }))
  const manifest: PublishedManifest = JSON.parse(readFileSync(join(folder, 'braidclaw/package.json'), 'utf8'))
  const shared = Object.keys(manifest.dependencies).map((name) => {
    const { stdout } = Bun.spawnSync(['npm', 'pack', '--ignore-scripts', '--pack-destination', folder, join(root, 'node_modules', name)])
    return join(folder, stdout.toString().trim())
  })
  return {
    ...{ folder, main, manifest, tarballs: [main, own, ...shared] },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Spares the fast tier the compression of a hundred megabytes. npm installs such a file too. */
async function uncompressed(folder: string, { platform, program }: { readonly platform: Platform; readonly program: string | undefined }) {
  await stagePlatform(join(folder, here), { platform, program })
  const tarball = join(folder, 'platform.tar')
  Bun.spawnSync(['tar', 'cf', tarball, '--transform', `s,^${here},package,`, '-C', folder, here])
  return tarball
}

export type Machine = {
  readonly dir: string
  readonly env: { readonly [name: string]: string }
  run(argv: readonly string[], options?: { readonly cwd?: string; readonly stdin?: string }): Ended
}
export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

/** A machine with this Node and npm, an empty home and no bun. `node`: the program. */
export function machine(folder: string, node = Bun.which('node') ?? 'node'): Machine {
  const dir = mkdtempSync(join(folder, 'machine-'))
  const [bin, home] = [join(dir, 'programs'), join(dir, 'home')]
  for (const path of [bin, home]) mkdirSync(path)
  symlinkSync(node, join(bin, 'node'))
  for (const name of ['npm', 'npx']) symlinkSync(Bun.which(name) ?? name, join(bin, name))
  const quiet = Object.fromEntries(['audit', 'fund', 'update_notifier'].map((name) => [`npm_config_${name}`, 'false']))
  const offline = { npm_config_registry: 'http://127.0.0.1:9/', npm_config_offline: 'true', npm_config_ignore_scripts: 'true' }
  const env = { ...quiet, ...offline, PATH: `${bin}:/usr/bin:/bin`, HOME: home, LANG: 'C.UTF-8', TERM: 'dumb' }
  const run: Machine['run'] = (argv, { cwd = home, stdin } = {}) => {
    const child = Bun.spawnSync([...argv], { cwd, env, stdin: stdin === undefined ? 'ignore' : Buffer.from(stdin), timeout: 60_000 })
    return { code: child.signalCode ? null : child.exitCode, stdout: child.stdout.toString(), stderr: child.stderr.toString() }
  }
  return { dir, env, run }
}

/** Runs the line `npm install -g ./out/*.tgz` with a prefix of its own. @returns the launcher that is then on the PATH */
export function installGlobally({ dir, run }: Machine, tarballs: readonly string[], line = 'npm install -g ./out/*.tgz'): string {
  const [prefix, out] = [join(dir, 'prefix'), join(dir, 'out')]
  for (const path of [prefix, out]) mkdirSync(path)
  for (const [at, tarball] of tarballs.entries()) symlinkSync(tarball, join(out, `${at}.tgz`))
  succeeded(run(['sh', '-c', `${line} --prefix ${prefix}`], { cwd: dir }))
  return join(prefix, 'bin/braidclaw')
}

/** Installs into a new project. @returns its folder */
export function installInProject({ dir, run }: Machine, tarballs: readonly string[]): string {
  const project = mkdtempSync(join(dir, 'project-'))
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'project', type: 'module', private: true }))
  succeeded(run(['npm', 'install', ...tarballs], { cwd: project }))
  return project
}

function succeeded({ code, stderr }: Ended): void {
  if (code !== 0) throw new Error(stderr)
}

/** Returns where the executable of an installation is, seen from its launcher. */
export function programBeside(launcher: string): string {
  return join(dirname(dirname(launcher)), `lib/node_modules/@braidclaw/${here}/bin/braidclaw`)
}
