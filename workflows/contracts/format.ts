/**
 * The format of what a stack's store and its open workflows hold. A change after which those of an earlier tree can't be continued
 * raises it. Every process refuses a store of another format, and a namespace with open workflows of an earlier one.
 */
export const stackFormat = 1;
