/** Builds the library of the published package into a folder: JavaScript modules for Node and for Bun, and the declarations of both. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { rollDeclarations } from './declarations.ts'
import { type Entry, fileOf } from './entries.ts'

const root = join(import.meta.dir, '../..')

export type Library = {
  /** The `exports` of package.json. */
  readonly exports: { readonly [subpath: string]: string | { readonly [condition: string]: string } }
  /** The packages that its types name; what runs is bundled. */
  readonly packages: readonly string[]
}

/** Writes `folder`/dist. @throws Error when a source does not compile, or does not run where the list says */
export async function buildLibrary(folder: string, entries: readonly Entry[]): Promise<Library> {
  const dist = join(folder, 'dist')
  mkdirSync(join(dist, 'types'), { recursive: true })
  const onNode = entries.flatMap(({ node, ...entry }): Bundled[] =>
    node === 'none' ? [] : [{ file: fileOf(entry), source: node === 'same' ? entry.source : node }],
  )
  const inBun = entries.flatMap((entry): Bundled[] => (entry.node === 'same' ? [] : [{ file: fileOf(entry), source: entry.source }]))
  const isAlone = ({ file }: Bundled) => alone.includes(file)
  await bundle({ entries: onNode.filter((entry) => !isAlone(entry)), outdir: join(dist, 'node'), target: 'node' })
  await bundle({ entries: onNode.filter(isAlone), outdir: join(dist, 'node'), target: 'node', splitting: false })
  await bundle({ entries: inBun, outdir: join(dist, 'bun'), target: 'bun' })
  // The sandbox of a configuration program shows it this one file.
  if (inBun.length > 0) await bundle({ entries: [programRunner], outdir: join(dist, 'bun'), target: 'bun' })
  const typed = await writeDeclarations(join(dist, 'types'), entries)
  return {
    exports: { ...Object.fromEntries(entries.map((entry) => [entry.subpath, conditionsOf(entry)])), './package.json': './package.json' },
    packages: [...typed].sort(),
  }
}

/** These are small and share no state with others, so each is one file: what they have in common would be a dozen files of a kilobyte. */
const alone: readonly string[] = ['behavioral', 'cache', 'formatters', 'relations', 'trajectories', 'transports']

const programRunner: Bundled = { file: 'run-program', source: 'src/config/layers/run-program.ts' }

/** A reader takes the first condition that it knows: TypeScript "types", Bun "bun", Node and bundlers "default". */
function conditionsOf(entry: Entry): { readonly [condition: string]: string } {
  const file = fileOf(entry)
  return {
    types: `./dist/types/${file}.d.ts`,
    ...(entry.node === 'same' ? {} : { bun: `./dist/bun/${file}.js` }),
    ...(entry.node === 'none' ? {} : { default: `./dist/node/${file}.js` }),
  }
}

type Bundled = { readonly file: string; readonly source: string }
type BundleOptions = {
  readonly entries: readonly Bundled[]
  readonly outdir: string
  readonly target: 'node' | 'bun'
  readonly splitting?: boolean
}

/**
 * Bundles the entries with all packages that they use, because one file loads faster than the many of a package; what several entries share
 * is in files of its own.
 */
async function bundle({ entries: all, outdir, target, splitting = true }: BundleOptions): Promise<void> {
  const entries = [...new Map(all.map((entry) => [entry.file, entry])).values()]
  if (entries.length === 0) return
  // These files exist only here: they give the outputs their names.
  const stubs = Object.fromEntries(entries.map(({ file, source }) => [stub(file), `export * from '../${source}'\n`]))
  const deferred = deferredFrom(entries.map(({ source }) => source))
  const loaders = deferred.map((path) => `'${path}': () => require('../${path}')`)
  await Bun.build({
    entrypoints: Object.keys(stubs),
    files: { ...stubs, [stub('deferred')]: `export const load = { ${loaders.join(',\n')} }\n` },
    ...{ root, outdir, target, format: 'esm', splitting, splitRequire: false, minChunkSize: splitting ? 65_536 : 0 },
    minify: { syntax: true, whitespace: true, identifiers: false },
    naming: { entry: '[name].js', chunk: 'chunk-[hash].js' },
    plugins: [
      {
        name: 'deferred',
        setup: (build) =>
          void build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({ loader: 'ts', contents: deferringImports(path) })),
      },
    ],
  })
}

function stub(name: string): string {
  return join(root, '.entries', `${name}.ts`)
}

/** A library serves no channel, so the servers and their pages stay out. */
const served = /^src\/(cli|control|dashboard|channels\/(discord|telegram|http|fifo|filter|terminal))\//
/** Leaves types alone: `typeof import('./x.ts')`, `import('./x.ts').Name`. */
const dynamicImport = /(?<!typeof )\bimport\('(\.[^']+\.ts)'\)(?!\.[A-Z])/g

/** Finds what the entries import only when they need it. A chunk for each of these would make a hundred files. */
function deferredFrom(sources: readonly string[]): readonly string[] {
  const scanner = new Bun.Transpiler({ loader: 'ts' })
  const [seen, deferred, queue] = [new Set<string>(), new Set<string>(), [...sources]]
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (seen.has(path) || !path.endsWith('.ts')) continue
    seen.add(path)
    for (const found of scanner.scanImports(readFileSync(join(root, path), 'utf8'))) {
      const target = join(dirname(path), found.path)
      if (!found.path.startsWith('.') || (found.kind === 'dynamic-import' && served.test(target))) continue
      if (found.kind === 'dynamic-import') deferred.add(target)
      queue.push(target)
    }
  }
  return [...deferred].sort()
}

/** Returns a source whose dynamic imports load the one chunk with everything deferred; a module in it runs only when it is asked for. */
function deferringImports(file: string): string {
  return readFileSync(file, 'utf8').replaceAll(dynamicImport, (_, path: string) => {
    const target = relative(root, join(dirname(file), path))
    if (served.test(target)) return `Promise.reject(new Error('${target} is not part of the library'))`
    return `import('${stub('deferred')}').then(({ load }) => load['${target}']())`
  })
}

async function writeDeclarations(folder: string, entries: readonly Entry[]): Promise<ReadonlySet<string>> {
  const scratch = mkdtempSync(join(tmpdir(), 'braidclaw-declarations-'))
  try {
    const project = join(scratch, 'tsconfig.json')
    const compilerOptions = {
      ...{ noEmit: false, declaration: true, emitDeclarationOnly: true, rootDir: root, outDir: join(scratch, 'out') },
      typeRoots: [join(root, 'node_modules/@types')],
    }
    const files = entries.map(({ source }) => join(root, source))
    writeFileSync(project, JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, files, include: [] }))
    const child = Bun.spawn([join(root, 'node_modules/.bin/tsc'), '-p', project], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
    const [printed, code] = await Promise.all([child.stdout.text(), child.exited])
    if (code !== 0) throw new Error(`tsc ended with exit code ${code}:\n${printed}`)
    const emitted = (entry: Entry) => join(scratch, 'out', entry.source.replace(/\.ts$/, '.d.ts'))
    const rolled = rollDeclarations([...new Set(entries.map(emitted))])
    writeFileSync(join(folder, 'all.d.ts'), rolled.text)
    for (const entry of entries) writeFileSync(join(folder, `${fileOf(entry)}.d.ts`), rolled.entryText(emitted(entry), './all.js'))
    return rolled.packages
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
