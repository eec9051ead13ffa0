/**
 * Keys of `.meta()` that only the reference is generated from. They are not listed to clients, and the build removes
 * them from the shipped schemas, where each would cost every start a copy of a schema.
 *
 * - `note`: what a parameter or a returned field means.
 * - `whenOmitted`: what applies without the parameter.
 * - `describedWith`: the tool whose page describes the contents; they are not repeated elsewhere.
 */
export const NOTE_KEYS = ['note', 'whenOmitted', 'describedWith'] as const;
