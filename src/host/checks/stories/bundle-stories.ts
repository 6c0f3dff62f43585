/** Runs inside the sandbox, on a view: bundles the story files of a project for the browser, which may execute macros of the project. */

import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A bundled file, or why it could not be bundled. */
export type BundledStories = { readonly file: string } & ({ readonly code: string; readonly css: string } | { readonly error: string })

/** Reads `{ stories, page }` from standard input: the glob of the files and the text of the page's methods. @returns JSON lines */
export async function bundleStories(): Promise<string> {
  const { stories, page } = JSON.parse(readFileSync(0, 'utf8'))
  const files = [...new Bun.Glob(stories).scanSync({ onlyFiles: true })].filter((file) => !/(?:^|\/)node_modules\//.test(file)).sort()
  const lines: string[] = []
  for (const file of files) lines.push(JSON.stringify({ file, ...(await bundled(file, page)) } satisfies BundledStories))
  return lines.join('\n')
}

async function bundled(file: string, page: string) {
  try {
    const path = join(process.cwd(), file)
    const has = (name: string) => isResolved(name, dirname(path))
    const framework = has('react-dom/client') ? 'react' : has('preact') ? 'preact' : undefined
    const { html, story, module } = file.endsWith('.html') ? fromHtml(path) : { html: '', story: path, module: undefined }
    const entry = join(dirname(path), '__story_entry__.ts')
    const text = [
      renderers[framework ?? ''] ?? 'const renderer = undefined',
      `const html = ${JSON.stringify(html)}`,
      `(${page}).start({ html, renderer, load: () => import(${JSON.stringify(story)}) })`,
    ].join(';\n')
    const built = await Bun.build({
      entrypoints: [entry],
      files: { [entry]: text, ...(module === undefined ? {} : { [story]: module }) },
      target: 'browser',
      jsx: framework === 'preact' ? { importSource: 'preact' } : undefined,
      define: { 'process.env.NODE_ENV': '"development"' },
    })
    const parts = await Promise.all(built.outputs.map(async (output) => [output.path.endsWith('.css'), await output.text()] as const))
    const joined = (isCss: boolean) => parts.flatMap(([css, content]) => (css === isCss ? [content] : [])).join('\n')
    return { code: joined(false), css: joined(true) }
  } catch (error) {
    const all = error instanceof AggregateError ? error.errors : [error]
    return {
      error: all
        .map((each) => [each.message, each.position?.lineText].filter(Boolean).join(': '))
        .join('\n')
        .slice(0, 4_000),
    }
  }
}

const renderers: { readonly [framework: string]: string } = {
  react: `import { createElement as h } from 'react'\nimport { createRoot } from 'react-dom/client'\nconst renderer = { h, mount: (node, root) => createRoot(root).render(node) }`,
  preact: `import { h, render } from 'preact'\nconst renderer = { h, mount: (node, root) => render(node, root) }`,
}

function isResolved(name: string, from: string): boolean {
  try {
    return Bun.resolveSync(name, from) !== ''
  } catch {
    return false
  }
}

/** Makes a module of the module scripts and style sheets of a page; the rest is its markup. */
function fromHtml(path: string): { readonly html: string; readonly story: string; readonly module: string } {
  const imports: string[] = []
  const take = (_: string, attributes: string, code = '') => {
    const source = /\b(?:src|href)="([^"]+)"/.exec(attributes)?.[1]
    imports.push(source === undefined ? code : `import ${JSON.stringify(source.startsWith('.') ? source : `./${source}`)}`)
    return ''
  }
  const html = readFileSync(path, 'utf8')
    .replace(/<script\b([^>]*\btype="module"[^>]*)>([\s\S]*?)<\/script\s*>/gi, take)
    .replace(/<link\b([^>]*\brel="stylesheet"[^>]*)>/gi, take)
  return { html, story: `${path}.ts`, module: imports.join('\n') }
}
