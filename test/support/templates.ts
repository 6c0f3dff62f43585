/** Writes templates of the filter. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from './cli.ts'

export function withTemplate(at: Nest, name: string, text: string): void {
  mkdirSync(join(at.home, '.braidclaw/templates'), { recursive: true })
  writeFileSync(join(at.home, `.braidclaw/templates/${name}`), text)
}
