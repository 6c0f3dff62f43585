/** Flags that several commands share, written once. */

export const workspaceFlag = {
  workspace: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'The folder to work in (default: workspace_dir, or this folder without a config)',
    placeholder: 'dir',
  },
} as const

export const sandboxFlag = {
  sandbox: {
    kind: 'enum',
    values: ['auto', 'bubblewrap', 'landlock', 'none'],
    optional: true,
    brief: 'How commands are confined (default: auto); none runs them with all your rights',
  },
} as const

export const toolsFlag = {
  tools: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Which tools: a folder of executables, a JSON file that lists some by name, or "default" for the built-in ones',
    placeholder: 'what',
  },
} as const

export const autonomyFlag = {
  autonomy: { kind: 'enum', values: ['readonly', 'supervised', 'full'], optional: true, brief: 'Instead of security.autonomy' },
} as const

export const jsonFlag = { json: { kind: 'boolean', optional: true, withNegated: false, brief: 'Print JSON for machines' } } as const

export type Workspace = { readonly workspace?: string }
export type Json = { readonly json?: boolean }

export function wholeNumber(input: string): number {
  if (!/^\d{1,9}$/.test(input)) throw new Error(`"${input}" is not a whole number`)
  return Number(input)
}
