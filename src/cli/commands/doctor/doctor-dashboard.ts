/** Checks for `doctor` that the files of the dashboard are there, or can be built from the sources. */

import type { Finding } from './doctor-finding.ts'

type Files = () => Promise<ReadonlyMap<string, { readonly gzip: Uint8Array }>>

export async function dashboardFindings(files: Files): Promise<Finding[]> {
  try {
    const found = await files()
    const bytes = [...found.values()].reduce((sum, { gzip }) => sum + gzip.byteLength, 0)
    if (found.has('/')) return [{ what: 'dashboard', state: 'ok', says: `${found.size} files, ${Math.ceil(bytes / 1024)} KiB compressed` }]
    return [broken('it has no first page')]
  } catch (error) {
    return [broken(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error))]
  }
}

function broken(why: string): Finding {
  return {
    what: 'dashboard',
    state: 'bad',
    says: `the page cannot be shown: ${why}`,
    remedy: ['install BraidClaw again with its packages: npm ci'],
  }
}
