/**
 * Makes the two npm packages of a release in a folder: `braidclaw` with the launcher and the library, and per platform one with the
 * executable, of which npm installs the one that fits. Neither has an install script.
 */

import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CompileOptions, compile } from '../compile.ts'
import { entries, type Platform, platformName, platforms } from './entries.ts'
import { buildLibrary } from './library.ts'

const root = join(import.meta.dir, '../..')

type Manifest = {
  readonly version: string
  readonly description: string
  readonly license: string
  readonly dependencies: { readonly [name: string]: string }
}

export type Packed = {
  readonly name: string
  readonly tarball: string
  readonly bytes: number
  readonly files: number
  readonly sha256: string
}

export type PackOptions = {
  /** The platforms whose executable is built. */
  readonly chosen: readonly Platform[]
  /** The executable of this platform, when it is built already. */
  readonly program?: string | undefined
}

/** @throws Error that says which step failed, and why */
export async function packAll(folder: string, { chosen, program }: PackOptions): Promise<readonly Packed[]> {
  mkdirSync(folder, { recursive: true })
  const packed = [pack(folder, await stageMain(join(folder, 'braidclaw')))]
  for (const platform of chosen) packed.push(pack(folder, await stagePlatform(join(folder, platformName(platform)), { platform, program })))
  return packed
}

/** Returns the folder that was staged. */
async function stageMain(folder: string): Promise<string> {
  const { dependencies, ...manifest } = ownManifest()
  rmSync(folder, { recursive: true, force: true })
  const library = await buildLibrary(folder, entries)
  copy(folder, ['docs', 'examples', 'README.md', 'LICENSE', 'CHANGELOG.md'])
  copy(folder, ['scripts/packages/launcher'], 'bin/braidclaw')
  writeManifest(folder, {
    ...describe('braidclaw', manifest),
    bin: { braidclaw: 'bin/braidclaw' },
    exports: library.exports,
    sideEffects: false,
    files: ['bin', 'dist', 'docs', 'examples', 'CHANGELOG.md'],
    dependencies: Object.fromEntries(library.packages.map((name) => [name, dependencies[name]])),
    optionalDependencies: Object.fromEntries(platforms.map((platform) => [`@braidclaw/${platformName(platform)}`, manifest.version])),
  })
  return folder
}

type Staged = Pick<PackOptions, 'program'> & { readonly platform: Platform }

/** Returns the folder that was staged. */
export async function stagePlatform(folder: string, { platform, program }: Staged): Promise<string> {
  const manifest = ownManifest()
  rmSync(folder, { recursive: true, force: true })
  const runtime = runtimeOf(platform, manifest, folder)
  const outfile = join(folder, 'bin/braidclaw')
  const entry = join(root, 'src/main.ts')
  if (program && !runtime) cpSync(program, outfile)
  const built = program && !runtime ? { ok: true as const } : await compile({ entry, outfile, runtime })
  rmSync(runtimeFolder(folder), { recursive: true, force: true })
  if (!built.ok) throw new Error(built.message)
  // The executable looks for its bridges one folder up.
  copy(folder, ['bridges', 'LICENSE'])
  const { os, cpu } = platform
  writeManifest(folder, {
    ...describe(`@braidclaw/${platformName(platform)}`, manifest),
    description: `The program of braidclaw for ${platformName(platform)}; install the package braidclaw`,
    os: [os],
    cpu: [cpu],
    libc: ['glibc'],
    files: ['bin', 'bridges'],
  })
  return folder
}

function ownManifest(): Manifest {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
}

function describe(name: string, { version, description, license }: Omit<Manifest, 'dependencies'>) {
  return { name, version, description, license, type: 'module', engines: { node: '>=20' } }
}

function writeManifest(folder: string, manifest: object): void {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
}

/** Copies files and folders of the repository, with the same modes whatever the umask of the checkout was. */
function copy(folder: string, names: readonly string[], as?: string): void {
  for (const name of names) {
    const target = join(folder, as ?? name)
    cpSync(join(root, name), target, { recursive: true })
    for (const path of filesIn(target)) chmodSync(path, statSync(path).mode & 0o100 ? 0o755 : 0o644)
  }
}

function filesIn(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path, { withFileTypes: true }).flatMap(({ name }) => filesIn(join(path, name)))
}

/**
 * Returns the Bun that becomes the executable of another platform: that of node_modules, or else of npm, where it must be the one that
 * package-lock.json names. Returns undefined for this platform, because Bun then uses itself.
 */
function runtimeOf({ os, cpu, runtime }: Platform, { dependencies }: Manifest, folder: string): CompileOptions['runtime'] {
  if (os === process.platform && cpu === process.arch) return undefined
  const target = `bun-${os}-${cpu}`
  const own = join(root, 'node_modules', runtime, 'bin/bun')
  if (existsSync(own)) return { path: own, target }
  const scratch = runtimeFolder(folder)
  mkdirSync(scratch, { recursive: true })
  const [got] = npmPack([`${runtime}@${dependencies.bun}`], scratch)
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  if (!got || got.integrity !== packages[`node_modules/${runtime}`]?.integrity)
    throw new Error(`${runtime} of npm is not the one in package-lock.json`)
  const { exitCode, stderr } = Bun.spawnSync(['tar', 'xzf', join(scratch, got.filename), '-C', scratch])
  if (exitCode !== 0) throw new Error(`tar: ${stderr}`)
  return { path: join(scratch, 'package/bin/bun'), target }
}

function runtimeFolder(folder: string): string {
  return `${folder}-runtime`
}

function pack(folder: string, staged: string): Packed {
  const [made] = npmPack([staged], folder)
  if (!made) throw new Error(`npm packed nothing of ${staged}`)
  const tarball = join(folder, made.filename)
  return {
    name: made.name,
    tarball,
    bytes: made.size,
    files: made.entryCount,
    sha256: new Bun.CryptoHasher('sha256').update(readFileSync(tarball)).digest('hex'),
  }
}

type NpmPacked = {
  readonly name: string
  readonly filename: string
  readonly size: number
  readonly entryCount: number
  readonly integrity: string
}

function npmPack(what: readonly string[], target: string): readonly NpmPacked[] {
  const { exitCode, stdout, stderr } = Bun.spawnSync(['npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', target, ...what], {
    cwd: target,
  })
  if (exitCode !== 0) throw new Error(`npm pack ${what.join(' ')}: ${stderr}`)
  return JSON.parse(stdout.toString())
}
